import { Button, Group, Select, Textarea, TextInput } from "@mantine/core";
import { useQuery } from "@tanstack/react-query";
import { useState } from "react";
import {
  api,
  type Category,
  data,
  ifMatch,
  keys,
  query,
  type RiskOut,
  type RiskStatus,
  type Severity,
  several,
  useListing,
} from "../../api";
import {
  type Column,
  CursorTable,
  FormDialog,
  IconFlag,
  IconPlus,
  NoRows,
  Page,
  Panel,
  StateBadge,
  stateTexts,
  Time,
  tell,
  useAct,
  useConfirm,
  useFilters,
} from "../../components";
import { useText, wordFor } from "../../i18n";
import { FilterBar, SelectFilter, TextFilter } from "../parts/FilterBar";
import { partTexts } from "../parts/parts.texts";
import { TitleCell } from "../parts/TitleCell";
import { Views } from "../parts/Views";
import classes from "./Risks.module.css";
import { riskTexts } from "./risks.texts";

const STATUSES: readonly RiskStatus[] = ["OPEN", "MITIGATING", "ACCEPTED", "CLOSED"];
const SEVERITIES: readonly Severity[] = ["CRITICAL", "HIGH", "MEDIUM", "LOW"];
const CATEGORIES: readonly Category[] = ["TECHNICAL", "LICENSE", "COST", "COMPLIANCE"];
const DEFAULTS = { status: "", severity: "", category: "", owner: "" };

/** The risk board, and the risks behind it. */
export default function RisksPage() {
  const t = useText(riskTexts);
  const part = useText(partTexts);
  const filters = useFilters(DEFAULTS);
  const { values, set } = filters;
  const [editing, setEditing] = useState<RiskOut | "new" | null>(null);
  const listing = useListing<RiskOut>(keys.risks.list(values), (cursor) => {
    const asked = query({
      status: several<RiskStatus>(values.status),
      severity: several<Severity>(values.severity),
      category: values.category as Category,
      owner: values.owner,
    });
    return data(api.GET("/v1/admin/risks", { params: { query: { ...asked, limit: 50, cursor } } }));
  });
  const columns: Column<RiskOut>[] = [
    {
      key: "risk",
      header: t("risk"),
      width: "minmax(14rem, 2.5fr)",
      phone: "title",
      cell: (risk) => <TitleCell title={risk.trigger_condition} facts={risk.mitigation_plan} />,
    },
    { key: "severity", header: t("severity"), width: "6rem", cell: (risk) => <StateBadge state={risk.severity} /> },
    { key: "status", header: part("state"), width: "6.5rem", cell: (risk) => <StateBadge state={risk.status} /> },
    { key: "category", header: t("category"), width: "6rem", cell: (risk) => t(risk.category), phone: "hidden" },
    { key: "owner", header: t("owner"), width: "minmax(6rem, 0.7fr)", cell: (risk) => risk.owner },
    {
      key: "changed",
      header: t("changed"),
      width: "7.5rem",
      cell: (risk) => <Time at={risk.updated_at} />,
      phone: "hidden",
    },
  ];
  return (
    <Page
      title={t("title")}
      text={t("text")}
      actions={
        <Button leftSection={<IconPlus size={16} />} onClick={() => setEditing("new")}>
          {t("create")}
        </Button>
      }
    >
      <Board
        chosen={values}
        onChoose={(status, severity) =>
          set(
            values.status === status && values.severity === severity
              ? { status: "", severity: "" }
              : { status, severity },
          )
        }
      />
      <FilterBar active={filters.active} onClear={filters.clear} onReload={listing.reload} actions={<Views />}>
        <SelectFilter
          label={part("state")}
          value={values.status}
          onChange={(status) => set({ status })}
          choices={STATUSES.map((value) => ({ value, label: wordFor(stateTexts, value) }))}
        />
        <SelectFilter
          label={t("severity")}
          value={values.severity}
          onChange={(severity) => set({ severity })}
          choices={SEVERITIES.map((value) => ({ value, label: wordFor(stateTexts, value) }))}
        />
        <SelectFilter
          label={t("category")}
          value={values.category}
          onChange={(category) => set({ category })}
          choices={CATEGORIES.map((value) => ({ value, label: t(value) }))}
        />
        <TextFilter label={t("owner")} value={values.owner} onChange={(owner) => set({ owner })} />
      </FilterBar>
      <CursorTable
        label={t("title")}
        listing={listing}
        columns={columns}
        rowKey={(risk) => risk.risk_id}
        onOpen={setEditing}
        empty={<NoRows filtered={filters.active} icon={IconFlag} title={t("none")} text={t("noneText")} />}
      />
      {editing && (
        <RiskForm
          key={editing === "new" ? "new" : editing.risk_id}
          risk={editing === "new" ? null : editing}
          onClose={() => setEditing(null)}
        />
      )}
    </Page>
  );
}

/** How many risks of each severity are in each state. */
function Board({
  chosen,
  onChoose,
}: {
  chosen: { status: string; severity: string };
  onChoose: (status: RiskStatus, severity: Severity) => void;
}) {
  const t = useText(riskTexts);
  const query = useQuery({ queryKey: keys.risks.board, queryFn: () => data(api.GET("/v1/admin/risks/board")) });
  const counts = new Map<string, number>();
  for (const square of query.data?.squares ?? []) {
    const key = `${square.status} ${square.severity}`;
    counts.set(key, (counts.get(key) ?? 0) + square.count);
  }
  return (
    <Panel title={t("board")} text={t("boardText")}>
      <div className={classes.board} role="table" aria-label={t("board")}>
        <div role="row" className={classes.line}>
          <span role="columnheader" />
          {STATUSES.map((status) => (
            <span key={status} role="columnheader" className={classes.head}>
              {wordFor(stateTexts, status)}
            </span>
          ))}
        </div>
        {SEVERITIES.map((severity) => (
          <div key={severity} role="row" className={classes.line}>
            <span role="rowheader" className={classes.side}>
              <StateBadge state={severity} />
            </span>
            {STATUSES.map((status) => {
              const count = counts.get(`${status} ${severity}`) ?? 0;
              const isChosen = chosen.status === status && chosen.severity === severity;
              return (
                <span key={status} role="cell">
                  <button
                    type="button"
                    className={classes.square}
                    data-severity={count > 0 && status !== "CLOSED" ? severity : undefined}
                    aria-pressed={isChosen}
                    aria-label={`${wordFor(stateTexts, status)}, ${wordFor(stateTexts, severity)}: ${count}`}
                    onClick={() => onChoose(status, severity)}
                  >
                    {count}
                  </button>
                </span>
              );
            })}
          </div>
        ))}
      </div>
    </Panel>
  );
}

function RiskForm({ risk, onClose }: { risk: RiskOut | null; onClose: () => void }) {
  const t = useText(riskTexts);
  const part = useText(partTexts);
  const confirm = useConfirm();
  const { act } = useAct(keys.risks.all);
  const [form, setForm] = useState({
    trigger_condition: risk?.trigger_condition ?? "",
    mitigation_plan: risk?.mitigation_plan ?? "",
    owner: risk?.owner ?? "",
    category: risk?.category ?? ("TECHNICAL" as Category),
    severity: risk?.severity ?? ("MEDIUM" as Severity),
    status: risk?.status ?? ("OPEN" as RiskStatus),
  });
  const set = (changes: Partial<typeof form>) => setForm((before) => ({ ...before, ...changes }));
  const save = async () => {
    if (risk === null) await data(api.POST("/v1/admin/risks", { body: form }));
    else {
      const params = { path: { risk_id: risk.risk_id } };
      await data(api.PATCH("/v1/admin/risks/{risk_id}", { params, headers: ifMatch(risk.version), body: form }));
    }
    tell(t("saved"));
    onClose();
  };
  const remove = async () => {
    if (risk === null) return;
    const yes = await confirm({ title: t("askDelete", { id: risk.risk_id }), action: t("delete"), danger: true });
    const params = { path: { risk_id: risk.risk_id } };
    if (yes && (await act(() => data(api.DELETE("/v1/admin/risks/{risk_id}", { params })), t("deleted")))) onClose();
  };
  return (
    <FormDialog
      size="lg"
      title={risk?.risk_id ?? t("create")}
      onSave={save}
      changes={keys.risks.all}
      onClose={onClose}
      aside={
        risk && (
          <Button variant="subtle" color="red.8" onClick={() => void remove()}>
            {t("delete")}
          </Button>
        )
      }
    >
      <Textarea
        label={t("trigger")}
        required
        autosize
        minRows={2}
        data-autofocus
        value={form.trigger_condition}
        onChange={(event) => set({ trigger_condition: event.currentTarget.value })}
      />
      <Textarea
        label={t("plan")}
        required
        autosize
        minRows={2}
        value={form.mitigation_plan}
        onChange={(event) => set({ mitigation_plan: event.currentTarget.value })}
      />
      <Group grow>
        <TextInput
          label={t("owner")}
          required
          value={form.owner}
          onChange={(event) => set({ owner: event.currentTarget.value })}
        />
        <Select
          label={t("category")}
          allowDeselect={false}
          data={CATEGORIES.map((value) => ({ value, label: t(value) }))}
          value={form.category}
          onChange={(value) => set({ category: value as Category })}
        />
      </Group>
      <Group grow>
        <Select
          label={t("severity")}
          allowDeselect={false}
          data={SEVERITIES.map((value) => ({ value, label: wordFor(stateTexts, value) }))}
          value={form.severity}
          onChange={(value) => set({ severity: value as Severity })}
        />
        <Select
          label={part("state")}
          allowDeselect={false}
          data={STATUSES.map((value) => ({ value, label: wordFor(stateTexts, value) }))}
          value={form.status}
          onChange={(value) => set({ status: value as RiskStatus })}
        />
      </Group>
    </FormDialog>
  );
}
