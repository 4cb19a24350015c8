import { Group, UnstyledButton } from "@mantine/core";
import { useQueries } from "@tanstack/react-query";
import { api, data, keys, type ListedStatus, query, type TaskFilterIn, type TaskStatus } from "../../api";
import { StateBadge } from "../../components";
import { formats, useLanguage } from "../../i18n";
import classes from "./StateCounts.module.css";

const COUNTED_EVERY_MS = 10_000;

/** How many tasks of the filter are in each state: a click shows those. */
export function StateCounts({
  states,
  filter,
  chosen,
  onChange,
}: {
  states: readonly TaskStatus[];
  filter: TaskFilterIn;
  chosen: string;
  onChange: (status: string) => void;
}) {
  const language = useLanguage();
  const { type, queue, created_after, internal, owner } = filter;
  const asked = query({ type, queue, created_after, internal, user_id: owner ?? "*" });
  const counts = useQueries({
    queries: states.map((status) => ({
      queryKey: keys.tasks.count({ ...asked, status }),
      queryFn: () =>
        data(api.GET("/v1/tasks/count", { params: { query: { ...asked, status: [status] as ListedStatus[] } } })),
      refetchInterval: COUNTED_EVERY_MS,
    })),
  });
  return (
    <Group gap="xs">
      {states.map((status, index) => {
        const found = counts[index]?.data;
        return (
          <UnstyledButton
            key={status}
            className={classes.count}
            aria-pressed={chosen === status}
            onClick={() => onChange(chosen === status ? "" : status)}
          >
            <StateBadge state={status} />{" "}
            <span className="figures">
              {found ? `${formats.number(found.count, language)}${found.exact ? "" : "+"}` : "…"}
            </span>
          </UnstyledButton>
        );
      })}
    </Group>
  );
}
