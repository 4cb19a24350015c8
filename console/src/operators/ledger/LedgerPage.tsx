import { Anchor, Button, Group, Stack, Text } from "@mantine/core";
import { useQuery } from "@tanstack/react-query";
import { Link } from "react-router";
import {
  api,
  data,
  type EntryOut,
  type EntryStatus,
  keys,
  query,
  type Source,
  useListing,
  type VerificationOut,
} from "../../api";
import {
  type Column,
  CursorTable,
  EntryState,
  EntryUnits,
  Fact,
  Facts,
  IconDownload,
  IconReceipt,
  IconShieldCheck,
  NoRows,
  Page,
  Panel,
  StateBadge,
  shortId,
  stateTexts,
  Time,
  useAct,
  useFilters,
} from "../../components";
import { formats, useLanguage, useText, wordFor } from "../../i18n";
import { FilterBar, RangeFilter, SelectFilter, TextFilter, useSince } from "../parts/FilterBar";
import { OwnerName, useUserNames } from "../parts/OwnerName";
import { partTexts } from "../parts/parts.texts";
import { Views } from "../parts/Views";
import { ledgerTexts } from "./ledger.texts";

const DEFAULTS = { status: "", source: "", user: "", range: "" };
const SOURCES: readonly Source[] = [
  "TASK_CREATE",
  "TASK_COMPLETE",
  "TASK_CANCEL",
  "TASK_FAIL",
  "MANUAL_ADJUST",
  "SUBSCRIPTION_GRANT",
];

/** The ledger, and whether it adds up. */
export default function LedgerPage() {
  const t = useText(ledgerTexts);
  const part = useText(partTexts);
  const filters = useFilters(DEFAULTS);
  const { values, set } = filters;
  const since = useSince(values.range);
  const asked = query({
    user_id: values.user || "*",
    status: values.status as EntryStatus,
    source: values.source as Source,
    since,
  });
  const listing = useListing<EntryOut>(keys.ledger.list(asked), (cursor) =>
    data(api.GET("/v1/usage", { params: { query: { ...asked, limit: 50, cursor } } })),
  );
  const names = useUserNames(listing.items.map((entry) => entry.user_id));
  const columns: Column<EntryOut>[] = [
    {
      key: "source",
      header: t("source"),
      width: "minmax(8rem, 1.2fr)",
      phone: "title",
      cell: (entry) => t(entry.source),
    },
    { key: "state", header: part("state"), width: "6.5rem", cell: (entry) => <EntryState entry={entry} /> },
    {
      key: "units",
      header: t("units"),
      width: "4.5rem",
      align: "end",
      cell: (entry) => <EntryUnits entry={entry} />,
    },
    {
      key: "user",
      header: t("who"),
      width: "8rem",
      cell: (entry) => <OwnerName id={entry.user_id} names={names} />,
      phone: "hidden",
    },
    {
      key: "task",
      header: t("task"),
      width: "8rem",
      cell: (entry) =>
        entry.task_id && (
          <Anchor component={Link} to={`/operators/tasks/${entry.task_id}`} size="sm" truncate display="block">
            {entry.task_title ?? shortId(entry.task_id)}
          </Anchor>
        ),
    },
    { key: "remark", header: t("remark"), width: "minmax(6rem, 1fr)", cell: (entry) => entry.remark, phone: "hidden" },
    { key: "when", header: t("when"), width: "7.5rem", cell: (entry) => <Time at={entry.created_at} /> },
  ];
  return (
    <Page
      title={t("title")}
      text={t("text")}
      actions={
        <Button
          component="a"
          href={`/v1/usage/export?${new URLSearchParams(asked)}`}
          download
          variant="default"
          leftSection={<IconDownload size={16} />}
        >
          {t("export")}
        </Button>
      }
    >
      <Verification />
      <FilterBar active={filters.active} onClear={filters.clear} onReload={listing.reload} actions={<Views />}>
        <SelectFilter
          label={part("state")}
          value={values.status}
          onChange={(status) => set({ status })}
          choices={["HELD", "COMMITTED", "RELEASED"].map((value) => ({ value, label: wordFor(stateTexts, value) }))}
        />
        <SelectFilter
          label={t("source")}
          value={values.source}
          onChange={(source) => set({ source })}
          choices={SOURCES.map((value) => ({ value, label: t(value) }))}
        />
        <TextFilter label={t("user")} value={values.user} onChange={(user) => set({ user })} />
        <RangeFilter value={values.range} onChange={(range) => set({ range })} />
      </FilterBar>
      <CursorTable
        label={t("title")}
        listing={listing}
        columns={columns}
        rowKey={(entry) => entry.id}
        empty={<NoRows filtered={filters.active} icon={IconReceipt} title={t("none")} text={t("noneText")} />}
      />
    </Page>
  );
}

function Verification() {
  const t = useText(ledgerTexts);
  const { busy, act } = useAct(keys.ledgerVerification);
  const query = useQuery({
    queryKey: keys.ledgerVerification,
    queryFn: () => data(api.GET("/v1/admin/ledger/verification")),
  });
  return (
    <Panel
      actions={
        <Button
          leftSection={<IconShieldCheck size={16} />}
          loading={busy}
          onClick={() => void act(() => data(api.POST("/v1/admin/ledger/verify")))}
        >
          {t("verify")}
        </Button>
      }
      title={t("verify")}
    >
      {query.data ? (
        <Found found={query.data} />
      ) : (
        <Text size="sm" c="dimmed">
          {query.isPending ? "…" : t("neverVerified")}
        </Text>
      )}
    </Panel>
  );
}

function Found({ found }: { found: VerificationOut }) {
  const t = useText(ledgerTexts);
  const language = useLanguage();
  const n = (value: number) => formats.number(value, language);
  return (
    <Stack gap="sm" role="status">
      <Group gap="sm">
        {found.fault_count === 0 ? (
          <StateBadge state="ok" label={t("clean")} />
        ) : (
          <StateBadge state="error" label={t("faulty", { n: found.fault_count })} />
        )}
      </Group>
      <Facts>
        <Fact name={t("looked")}>
          <Time at={found.finished_at} />
        </Fact>
        <Fact name={t("entries")}>{n(found.entries)}</Fact>
        <Fact name={t("quotas")}>{n(found.entitlements)}</Fact>
        <Fact name={t("months")}>{n(found.archived_months)}</Fact>
      </Facts>
      {found.faults.map((fault) => (
        <Text size="sm" key={`${fault.kind} ${fault.about}`}>
          <b>{fault.about}</b>: {fault.message}
        </Text>
      ))}
    </Stack>
  );
}
