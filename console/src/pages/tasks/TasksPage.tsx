import { Button, Group, Progress, Select, Text, TextInput } from "@mantine/core";
import { Link } from "react-router";
import {
  api,
  data,
  keys,
  type ListedStatus,
  query,
  several,
  type TaskItemOut,
  type TaskStatus,
  useListing,
} from "../../api";
import {
  type Column,
  CursorTable,
  commonTexts,
  Elapsed,
  Empty,
  IconListCheck,
  Page,
  StateBadge,
  stateTexts,
  Time,
  useFilters,
} from "../../components";
import { useLanguage, useText, wordFor } from "../../i18n";
import { isOver } from "../../live/task";
import { useTaskTypes } from "../../live/taskTypes";
import { RemovalBadge } from "../remove/Outcome";
import { failureOf, MEDIA } from "./failure";
import { tasksTexts } from "./tasks.texts";

const NONE = { status: "", type: "", from: "", to: "" };
const DETECT = "removal.detect";
const STATUSES: readonly TaskStatus[] = [
  "QUEUED",
  "RUNNING",
  "PREPROCESSING",
  "DETECTING",
  "INPAINTING",
  "PACKAGING",
  "SUCCEEDED",
  "FAILED",
  "CANCELED",
];

export default function TasksPage() {
  const t = useText(tasksTexts);
  const common = useText(commonTexts);
  useLanguage();
  const filters = useFilters(NONE);
  const { status, type, from, to } = filters.values;
  const types = useTaskTypes();
  const asked = query({
    status: several<TaskStatus>(status) as ListedStatus[],
    type,
    created_after: from && new Date(from).toISOString(),
    created_before: to && new Date(`${to}T23:59:59`).toISOString(),
  });
  const listing = useListing<TaskItemOut>(
    keys.tasks.own(asked),
    (cursor) => data(api.GET("/v1/tasks", { params: { query: { ...asked, limit: 50, cursor } } })),
    { refetchInterval: 3000 },
  );
  // The page of a file looks for marks by itself: that is no work of its own, unless it is asked for.
  const shown = type ? listing : { ...listing, items: listing.items.filter((task) => task.type !== DETECT) };
  const columns: Column<TaskItemOut>[] = [
    {
      key: "title",
      header: t("task"),
      width: "minmax(9rem, 2fr)",
      phone: "title",
      cell: (task) => (
        <Text size="sm" fw={600} truncate>
          {task.title || task.id}
        </Text>
      ),
    },
    {
      key: "status",
      header: t("state"),
      width: "9rem",
      cell: (task) =>
        MEDIA.includes(task.type) ? (
          <RemovalBadge removal={{ ...task, accept_poor: false }} />
        ) : (
          <StateBadge state={task.status} />
        ),
    },
    {
      key: "progress",
      header: t("progress"),
      width: "minmax(9rem, 2fr)",
      phone: "hidden",
      cell: (task) =>
        task.status === "FAILED" ? (
          <Text size="sm" c="dimmed" truncate title={failureOf(task)}>
            {failureOf(task)}
          </Text>
        ) : isOver(task.status) ? null : (
          <Progress value={task.progress} size="sm" aria-label={`${task.progress} %`} />
        ),
    },
    {
      key: "type",
      header: t("type"),
      width: "7rem",
      phone: "hidden",
      cell: (task) => (
        <Text size="sm" c="dimmed" truncate>
          {nameOfType(task.type)}
        </Text>
      ),
    },
    { key: "created", header: t("created"), width: "9rem", cell: (task) => <Time at={task.created_at} /> },
    {
      key: "duration",
      header: t("duration"),
      width: "7rem",
      align: "end",
      cell: (task) => (task.started_at ? <Elapsed from={task.started_at} to={task.finished_at} /> : "–"),
    },
  ];
  return (
    <Page title={t("title")} text={t("text")}>
      <Group gap="sm" align="flex-end">
        <Select
          label={t("status")}
          placeholder={t("anyStatus")}
          clearable
          w={{ base: "100%", xs: 180 }}
          value={status || null}
          onChange={(value) => filters.set({ status: value ?? "" })}
          data={STATUSES.map((each) => ({ value: each, label: wordFor(stateTexts, each) }))}
        />
        <Select
          label={t("type")}
          placeholder={t("anyType")}
          clearable
          searchable
          w={{ base: "100%", xs: 200 }}
          value={type || null}
          onChange={(value) => filters.set({ type: value ?? "" })}
          data={[...new Set([...(types.data ?? []).map((each) => each.name), ...(type ? [type] : [])])].map((each) => ({
            value: each,
            label: nameOfType(each),
          }))}
        />
        <TextInput
          label={t("from")}
          type="date"
          value={from}
          onChange={(event) => filters.set({ from: event.currentTarget.value })}
        />
        <TextInput
          label={t("to")}
          type="date"
          value={to}
          onChange={(event) => filters.set({ to: event.currentTarget.value })}
        />
        {filters.active && (
          <Button variant="subtle" onClick={filters.clear}>
            {common("clearFilters")}
          </Button>
        )}
      </Group>
      <CursorTable
        label={t("title")}
        listing={shown}
        // Nothing but done files: there is no progress, and no failure to explain.
        columns={shown.items.every(({ status }) => status === "SUCCEEDED") ? columns.filter(isBrief) : columns}
        rowKey={(task) => task.id}
        href={(task) => `/${MEDIA.includes(task.type) ? "remove" : "tasks"}/${task.id}`}
        empty={
          filters.active ? (
            <Empty
              title={common("nothingMatches")}
              text={common("nothingMatchesText")}
              action={
                <Button variant="light" onClick={filters.clear}>
                  {common("clearFilters")}
                </Button>
              }
            />
          ) : (
            <Empty
              icon={IconListCheck}
              title={t("none")}
              text={t("noneText")}
              action={
                <Button component={Link} to="/remove">
                  {t("remove")}
                </Button>
              }
            />
          )
        }
      />
    </Page>
  );
}

/** The types of removals have words; those of programs have their own names. */
function nameOfType(type: string): string {
  const word = wordFor(tasksTexts, `type-${type}`);
  return word === `type-${type}` ? type : word;
}

function isBrief({ key }: Column<TaskItemOut>): boolean {
  return key !== "progress";
}
