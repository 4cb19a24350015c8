import type { ReactNode } from "react";
import { api, data, type ExecutionItemOut, keys, query, several, useListing } from "../../api";
import {
  type Column,
  CursorTable,
  IconHistory,
  NoRows,
  Page,
  StateBadge,
  stateTexts,
  Time,
  useFilters,
} from "../../components";
import { formats, useLanguage, useText, wordFor } from "../../i18n";
import { lastLine } from "../../pages/tasks/lastLine";
import { useMe } from "../../session/store";
import type { RunFilter } from "../live/belongs";
import { pollEvery } from "../live/useChanges";
import { AUDITED_EVERY_MS, OWN_EVERY_MS } from "../parts/audited";
import { FilterBar, ManyFilter, RangeFilter, SelectFilter, TextFilter, useSince } from "../parts/FilterBar";
import { partTexts } from "../parts/parts.texts";
import { TitleCell } from "../parts/TitleCell";
import { Views } from "../parts/Views";
import { runTexts } from "./runs.texts";

const DEFAULTS = { status: "", trigger: "", type: "", schedule: "", range: "" };
type Status = ExecutionItemOut["status"];

const STATES: readonly Status[] = ["PENDING", "RUNNING", "SUCCEEDED", "FAILED", "TIMED_OUT", "CANCELED", "INTERRUPTED"];

/** Runs of all schedules. */
export default function RunsPage() {
  const t = useText(runTexts);
  const part = useText(partTexts);
  const filters = useFilters(DEFAULTS);
  const { values, set } = filters;
  const since = useSince(values.range);
  return (
    <Page title={t("title")} text={t("text")}>
      <FilterBar active={filters.active} onClear={filters.clear} actions={<Views />}>
        <ManyFilter
          label={part("state")}
          value={values.status}
          onChange={(status) => set({ status })}
          choices={STATES.map((value) => ({ value, label: wordFor(stateTexts, value) }))}
        />
        <SelectFilter
          label={t("trigger")}
          value={values.trigger}
          onChange={(trigger) => set({ trigger })}
          choices={[
            { value: "scheduled", label: t("scheduled") },
            { value: "manual", label: t("manual") },
          ]}
        />
        <TextFilter label={part("type")} value={values.type} onChange={(type) => set({ type })} />
        <RangeFilter value={values.range} onChange={(range) => set({ range })} />
      </FilterBar>
      <RunTable
        filter={query({
          status: several<Status>(values.status),
          trigger: values.trigger as "scheduled" | "manual",
          type: values.type,
          schedule_id: values.schedule,
          due_after: since,
        })}
        empty={<NoRows filtered={filters.active} icon={IconHistory} title={t("none")} text={t("noneText")} />}
      />
    </Page>
  );
}

export function RunTable({ filter, empty }: { filter: RunFilter; empty: ReactNode }) {
  const t = useText(runTexts);
  const part = useText(partTexts);
  const language = useLanguage();
  const { user } = useMe();
  const listing = useListing<ExecutionItemOut>(
    keys.runs.list(filter),
    (cursor) => {
      const asked = { user_id: "*", ...filter, limit: 50, cursor };
      return data(api.GET("/v1/executions", { params: { query: asked } }));
    },
    { refetchInterval: pollEvery(filter.user_id === user.id ? OWN_EVERY_MS : AUDITED_EVERY_MS) },
  );
  const columns: Column<ExecutionItemOut>[] = [
    {
      key: "schedule",
      header: t("schedule"),
      width: "minmax(11rem, 2fr)",
      phone: "title",
      cell: (run) => (
        <TitleCell
          title={run.schedule_name}
          error={run.error_message && lastLine(run.error_message)}
          facts={run.type}
        />
      ),
    },
    { key: "state", header: part("state"), width: "7.5rem", cell: (run) => <StateBadge state={run.status} /> },
    { key: "due", header: t("due"), width: "7.5rem", cell: (run) => <Time at={run.scheduled_at} /> },
    {
      key: "took",
      header: t("took"),
      width: "5rem",
      align: "end",
      cell: (run) => (run.finished_at ? formats.duration(run.duration_ms, language) : "–"),
    },
    { key: "trigger", header: t("trigger"), width: "6rem", cell: (run) => t(run.trigger_type), phone: "hidden" },
    {
      key: "retry",
      header: t("retry"),
      width: "4.5rem",
      align: "end",
      cell: (run) => run.retry_count + 1,
      phone: "hidden",
    },
  ];
  return (
    <CursorTable
      label={t("title")}
      listing={listing}
      columns={columns}
      rowKey={(run) => run.id}
      href={(run) => `/operators/runs/${run.id}`}
      empty={empty}
    />
  );
}
