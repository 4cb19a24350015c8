import { Button, Menu, Progress, Switch, Text } from "@mantine/core";
import { type ReactNode, useEffect, useMemo, useState } from "react";
import { Link } from "react-router";
import {
  api,
  data,
  keys,
  type ListedStatus,
  query,
  several,
  type TaskFilterIn,
  type TaskItemOut,
  type TaskStatus,
  useListing,
} from "../../api";
import {
  type Column,
  CursorTable,
  commonTexts,
  IconBan,
  IconChevronDown,
  IconListCheck,
  IconPlus,
  IconRefresh,
  IconStack2,
  IconTrash,
  IconX,
  Id,
  NoRows,
  Page,
  StateBadge,
  stateTexts,
  Time,
  useFilters,
} from "../../components";
import { useText, wordFor } from "../../i18n";
import { useTaskTypes } from "../../live/taskTypes";
import { lastLine } from "../../pages/tasks/lastLine";
import { pollEvery } from "../live/useChanges";
import { AUDITED_EVERY_MS } from "../parts/audited";
import {
  FilterBar,
  ManyFilter,
  RangeFilter,
  rememberedRange,
  SelectFilter,
  TextFilter,
  useSince,
} from "../parts/FilterBar";
import { OwnerName, useUserNames } from "../parts/OwnerName";
import { partTexts } from "../parts/parts.texts";
import { SelectionBar } from "../parts/SelectionBar";
import { useColumns } from "../parts/useColumns";
import { Views } from "../parts/Views";
import { SearchBox } from "./SearchBox";
import { StateCounts } from "./StateCounts";
import { TaskPanel } from "./TaskPanel";
import { taskTexts } from "./tasks.texts";
import { useBulk } from "./useBulk";

const HIDDEN_AT_FIRST = ["queue", "id"];
const STATUSES: readonly TaskStatus[] = ["QUEUED", "RUNNING", "SUCCEEDED", "FAILED", "CANCELED"];

/** Everybody's tasks: filtered, watched, and acted on one by one or all that match. */
export default function TasksPage() {
  const t = useText(taskTexts);
  const part = useText(partTexts);
  const defaults = useMemo(
    () => ({
      ...{ status: "", type: "", queue: "", owner: "", title: "", error: "", internal: "", open: "" },
      range: rememberedRange(),
    }),
    [],
  );
  const filters = useFilters(defaults);
  const { values, set } = filters;
  const since = useSince(values.range);
  const filter = useMemo<TaskFilterIn>(
    () =>
      query({
        owner: values.owner || "*",
        status: several<TaskStatus>(values.status),
        type: values.type,
        queue: values.queue,
        created_after: since,
        // The product's own come every minute, and would hide other tasks.
        internal: values.internal || values.type ? undefined : false,
      }),
    [values, since],
  );
  const { title, error } = values;
  const listing = useListing<TaskItemOut>(
    keys.tasks.everybodys({ ...filter, ...query({ title, error }) }),
    (cursor) => {
      const { owner, status, type, queue, created_after, internal } = filter;
      const asked = query({
        user_id: owner ?? "*",
        status: status as ListedStatus[],
        type,
        queue,
        created_after,
        internal,
        title,
        error,
      });
      return data(api.GET("/v1/tasks", { params: { query: { ...asked, cursor, limit: 50 } } }));
    },
    { refetchInterval: pollEvery(AUDITED_EVERY_MS) },
  );
  const types = useTaskTypes();
  const names = useUserNames([...listing.items.map((task) => task.user_id), values.owner]);
  const [chosen, setChosen] = useState<ReadonlySet<string>>(new Set());
  const wanted = JSON.stringify({ ...filter, title, error });
  // biome-ignore lint/correctness/useExhaustiveDependencies: another filter shows other rows
  useEffect(() => setChosen(new Set()), [wanted]);

  const columns: Column<TaskItemOut>[] = [
    {
      key: "task",
      header: t("task"),
      width: "minmax(9rem, 2fr)",
      phone: "title",
      cell: (task) => <Line>{task.title || task.type}</Line>,
    },
    { key: "state", header: part("state"), width: "7rem", cell: (task) => <State task={task} /> },
    {
      key: "error",
      header: t("error"),
      width: "minmax(7rem, 2fr)",
      phone: "hidden",
      cell: (task) => (
        <Line dimmed>{task.status === "FAILED" && task.error_message ? lastLine(task.error_message) : ""}</Line>
      ),
    },
    {
      key: "type",
      header: part("type"),
      width: "minmax(6rem, 1fr)",
      cell: (task) => <Line dimmed>{task.type}</Line>,
      phone: "hidden",
    },
    {
      key: "queue",
      header: part("queue"),
      width: "minmax(4.5rem, 0.5fr)",
      cell: (task) => <Line dimmed>{task.queue}</Line>,
      phone: "hidden",
    },
    {
      key: "attempt",
      header: t("attempt"),
      width: "3.5rem",
      align: "end",
      phone: "hidden",
      cell: (task) => `${task.attempt} / ${task.max_attempts}`,
    },
    {
      key: "owner",
      header: part("ownedBy"),
      width: "6rem",
      cell: (task) => <OwnerName id={task.user_id} names={names} />,
    },
    { key: "created", header: part("created"), width: "7rem", cell: (task) => <Time at={task.created_at} /> },
    { key: "id", header: part("id"), width: "7.5rem", cell: (task) => <Id id={task.id} />, phone: "hidden" },
  ];
  const { shown, menu } = useColumns("tasks", columns, HIDDEN_AT_FIRST);
  return (
    <Page
      title={t("title")}
      text={t("text")}
      actions={
        <>
          <Button component={Link} to="/operators/tasks/failures" variant="default">
            {t("failures")}
          </Button>
          <Button component={Link} to="/operators/tasks/bulk" variant="default" leftSection={<IconStack2 size={16} />}>
            {t("bulks")}
          </Button>
          <Button component={Link} to="/operators/tasks/new" leftSection={<IconPlus size={16} />}>
            {t("submit")}
          </Button>
        </>
      }
    >
      <FilterBar
        active={filters.active}
        onClear={filters.clear}
        onReload={listing.reload}
        actions={
          <>
            <Views />
            {menu}
            {/* The bulk actions know no part of a title or an error: what would be done is more than what is seen. */}
            {!title && !error && <Act filter={filter} label={t("allThatMatch")} />}
          </>
        }
      >
        <SearchBox types={(types.data ?? []).map(({ name }) => name)} onChoose={set} />
        {values.owner && (
          <Chip onRemove={() => set({ owner: "" })}>
            {t("ofOwner", { name: names.get(values.owner) ?? values.owner })}
          </Chip>
        )}
        {title && <Chip onRemove={() => set({ title: "" })}>{t("inTitle", { text: title })}</Chip>}
        {error && <Chip onRemove={() => set({ error: "" })}>{t("inError", { text: error })}</Chip>}
        <ManyFilter
          label={part("state")}
          value={values.status}
          onChange={(status) => set({ status })}
          choices={STATUSES.map((value) => ({ value, label: wordFor(stateTexts, value) }))}
        />
        <SelectFilter
          label={part("type")}
          value={values.type}
          onChange={(type) => set({ type })}
          choices={(types.data ?? []).map(({ name }) => ({ value: name, label: name }))}
        />
        <TextFilter label={part("queue")} value={values.queue} onChange={(queue) => set({ queue })} width={140} />
        <RangeFilter value={values.range} onChange={(range) => set({ range })} />
        <Switch
          size="sm"
          label={t("internal")}
          checked={values.internal !== ""}
          onChange={(event) => set({ internal: event.currentTarget.checked ? "shown" : "" })}
        />
      </FilterBar>
      {!title && !error && (
        <StateCounts states={STATUSES} filter={filter} chosen={values.status} onChange={(status) => set({ status })} />
      )}
      {chosen.size > 0 && (
        <SelectionBar count={chosen.size} onClear={() => setChosen(new Set())}>
          <Act filter={{ ...filter, ids: [...chosen] }} />
        </SelectionBar>
      )}
      <CursorTable
        label={t("title")}
        listing={listing}
        columns={shown}
        rowKey={(task) => task.id}
        onOpen={(task) => set({ open: task.id })}
        selection={{ chosen, onChange: setChosen }}
        empty={<NoRows filtered={filters.active} icon={IconListCheck} title={t("empty")} text={t("emptyText")} />}
      />
      {values.open && <TaskPanel taskId={values.open} onClose={() => set({ open: "" })} />}
    </Page>
  );
}

function Line({ dimmed = false, children }: { dimmed?: boolean; children: ReactNode }) {
  return (
    <Text size="sm" truncate {...(dimmed ? { c: "dimmed" } : { fw: 600 })}>
      {children}
    </Text>
  );
}

/** Part of a filter that has no field of its own. */
function Chip({ onRemove, children }: { onRemove: () => void; children: ReactNode }) {
  const common = useText(commonTexts);
  return (
    <Button
      variant="light"
      size="sm"
      rightSection={<IconX size={14} />}
      onClick={onRemove}
      aria-label={`${common("clearFilters")}: ${children}`}
    >
      {children}
    </Button>
  );
}

function State({ task }: { task: TaskItemOut }) {
  return (
    <>
      <StateBadge state={task.status} />
      {task.finished_at === null && task.progress > 0 && (
        <Progress value={task.progress} size={4} mt={4} maw={110} aria-label={`${task.progress} %`} />
      )}
    </>
  );
}

/** The three things that can be done: buttons for what is selected, a menu for all that match. */
function Act({ filter, label }: { filter: TaskFilterIn; label?: string }) {
  const t = useText(taskTexts);
  const { busy, bulk } = useBulk();
  const actions = [
    ["cancel", t("cancel"), IconBan],
    ["retry", t("retry"), IconRefresh],
    ["delete", t("delete"), IconTrash],
  ] as const;
  if (label === undefined) {
    return actions.map(([action, name, Drawn]) => (
      <Button
        key={action}
        size="compact-sm"
        variant="default"
        loading={busy}
        leftSection={<Drawn size={14} />}
        onClick={() => void bulk(action, filter)}
      >
        {name}
      </Button>
    ));
  }
  return (
    <Menu position="bottom-end" width={220}>
      <Menu.Target>
        <Button variant="default" loading={busy} rightSection={<IconChevronDown size={14} />}>
          {label}
        </Button>
      </Menu.Target>
      <Menu.Dropdown>
        {actions.map(([action, name, Drawn]) => (
          <Menu.Item key={action} leftSection={<Drawn size={16} />} onClick={() => void bulk(action, filter)}>
            {name}
          </Menu.Item>
        ))}
      </Menu.Dropdown>
    </Menu>
  );
}
