import { Button } from "@mantine/core";
import { useEffect, useState } from "react";
import { Link, useNavigate } from "react-router";
import { api, data, keys, query, type ScheduleAction, type ScheduleItemOut, useListing } from "../../api";
import {
  type Column,
  CursorTable,
  IconCalendarTime,
  IconPlus,
  NoRows,
  Page,
  StateBadge,
  stateTexts,
  Time,
  useAct,
  useConfirm,
  useFilters,
} from "../../components";
import { formats, useLanguage, useText, wordFor } from "../../i18n";
import { pollEvery } from "../live/useChanges";
import { AUDITED_EVERY_MS } from "../parts/audited";
import { FilterBar, SelectFilter, TextFilter } from "../parts/FilterBar";
import { partTexts } from "../parts/parts.texts";
import { SelectionBar } from "../parts/SelectionBar";
import { TitleCell } from "../parts/TitleCell";
import { Views } from "../parts/Views";
import { rhythmOf } from "./rhythm";
import { scheduleTexts } from "./schedules.texts";

const DEFAULTS = { name: "", type: "", enabled: "", owner: "" };

/** All schedules. */
export default function SchedulesPage() {
  const t = useText(scheduleTexts);
  const part = useText(partTexts);
  const language = useLanguage();
  const filters = useFilters(DEFAULTS);
  const { values, set } = filters;
  const [chosen, setChosen] = useState<ReadonlySet<string>>(new Set());
  const wanted = JSON.stringify(values);
  // biome-ignore lint/correctness/useExhaustiveDependencies: another filter shows other rows
  useEffect(() => setChosen(new Set()), [wanted]);
  const listing = useListing<ScheduleItemOut>(
    keys.schedules.list(values),
    (cursor) => {
      const asked = query({
        user_id: values.owner || "*",
        name: values.name,
        type: values.type,
        enabled: values.enabled && values.enabled === "enabled",
      });
      return data(api.GET("/v1/schedules", { params: { query: { ...asked, limit: 50, cursor } } }));
    },
    { refetchInterval: pollEvery(AUDITED_EVERY_MS) },
  );
  const columns: Column<ScheduleItemOut>[] = [
    {
      key: "name",
      header: t("name"),
      width: "minmax(12rem, 2fr)",
      phone: "title",
      cell: (schedule) => (
        <TitleCell
          title={schedule.name}
          error={schedule.consecutive_failures > 0 && t("failuresInARow", { n: schedule.consecutive_failures })}
          facts={schedule.type}
        />
      ),
    },
    {
      key: "state",
      header: part("state"),
      width: "6.5rem",
      cell: (schedule) => <StateBadge state={schedule.enabled ? "enabled" : "disabled"} />,
    },
    {
      key: "rhythm",
      header: t("rhythm"),
      width: "minmax(6rem, 0.6fr)",
      cell: (schedule) => <code>{rhythmOf(schedule)}</code>,
    },
    {
      key: "next",
      header: t("next"),
      width: "6.5rem",
      cell: (schedule) => (schedule.next_run ? <Time at={schedule.next_run} /> : t("never")),
    },
    {
      key: "last",
      header: t("last"),
      width: "7.5rem",
      cell: (schedule) => <Time at={schedule.last_executed_at} />,
      phone: "hidden",
    },
    {
      key: "rate",
      header: t("rate"),
      width: "4.5rem",
      align: "end",
      cell: (schedule) =>
        schedule.total_executions > 0
          ? formats.percent(schedule.succeeded_executions / schedule.total_executions, language)
          : "–",
    },
  ];
  return (
    <Page
      title={t("title")}
      text={t("text")}
      actions={
        <Button component={Link} to="/operators/schedules/new" leftSection={<IconPlus size={16} />}>
          {t("create")}
        </Button>
      }
    >
      <FilterBar active={filters.active} onClear={filters.clear} onReload={listing.reload} actions={<Views />}>
        <TextFilter label={t("name")} value={values.name} onChange={(name) => set({ name })} />
        <TextFilter label={part("type")} value={values.type} onChange={(type) => set({ type })} />
        <SelectFilter
          label={part("state")}
          value={values.enabled}
          onChange={(enabled) => set({ enabled })}
          choices={["enabled", "disabled"].map((value) => ({ value, label: wordFor(stateTexts, value) }))}
        />
        <TextFilter label={part("owner")} value={values.owner} onChange={(owner) => set({ owner })} />
      </FilterBar>
      {chosen.size > 0 && (
        <SelectionBar count={chosen.size} onClear={() => setChosen(new Set())}>
          <Act uids={[...chosen]} />
        </SelectionBar>
      )}
      <CursorTable
        label={t("title")}
        listing={listing}
        columns={columns}
        rowKey={(schedule) => schedule.id}
        href={(schedule) => `/operators/schedules/${schedule.id}`}
        selection={{ chosen, onChange: setChosen }}
        empty={<NoRows filtered={filters.active} icon={IconCalendarTime} title={t("none")} text={t("noneText")} />}
      />
    </Page>
  );
}

function Act({ uids }: { uids: string[] }) {
  const t = useText(scheduleTexts);
  const confirm = useConfirm();
  const navigate = useNavigate();
  const { act } = useAct();
  const switchAll = async (action: ScheduleAction) => {
    const n = uids.length;
    const yes = await confirm({
      title: action === "enable" ? t("askEnable", { n }) : t("askDisable", { n }),
      body: t("bulkText"),
      action: t(action),
      danger: action === "disable",
    });
    if (!yes) return;
    await act(async () => {
      const body = { action, filter: { owner: "*", ids: uids }, expected: n };
      const made = await data(api.POST("/v1/schedules/bulk", { body }));
      void navigate(`/operators/tasks/bulk/${made.task_id}`);
    });
  };
  return (["enable", "disable"] as const).map((action) => (
    <Button key={action} size="compact-sm" variant="default" onClick={() => void switchAll(action)}>
      {t(action)}
    </Button>
  ));
}
