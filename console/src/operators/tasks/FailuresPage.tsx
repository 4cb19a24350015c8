import { Text } from "@mantine/core";
import { useQuery } from "@tanstack/react-query";
import { Link } from "react-router";
import { api, data, keys } from "../../api";
import { Empty, IconListCheck, Loaded, Page, Panel, Time } from "../../components";
import { formats, useLanguage, useText } from "../../i18n";
import classes from "./Failures.module.css";
import { taskTexts } from "./tasks.texts";

/** What fails, how often: the newest failures by the last line of their error. */
export default function FailuresPage() {
  const t = useText(taskTexts);
  const language = useLanguage();
  const query = useQuery({
    queryKey: keys.failures,
    queryFn: async () => (await data(api.GET("/v1/admin/failures"))).items,
    refetchInterval: 60_000,
  });
  return (
    <Page title={t("failures")} text={t("failuresText")}>
      <Loaded query={query}>
        {(groups) =>
          groups.length === 0 ? (
            <Empty icon={IconListCheck} title={t("noFailures")} />
          ) : (
            <Panel>
              <ul className={classes.groups}>
                {groups.map((each) => (
                  <li key={`${each.task_type} ${each.error_code} ${each.error}`}>
                    <b className="figures">{formats.number(each.count, language)} ×</b>
                    <Link
                      to={`/operators/tasks?${new URLSearchParams({ status: "FAILED", type: each.task_type, error: each.error.slice(0, 200) })}`}
                      className={classes.error}
                    >
                      {each.error || each.error_code || "–"}
                    </Link>
                    <Text size="sm" c="dimmed" truncate>
                      {each.task_type}
                    </Text>
                    <Text size="sm" c="dimmed" component="div">
                      <Time at={each.last_at} />
                    </Text>
                  </li>
                ))}
              </ul>
            </Panel>
          )
        }
      </Loaded>
    </Page>
  );
}
