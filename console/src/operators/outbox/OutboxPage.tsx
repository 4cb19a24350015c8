import { Button, Drawer, Group, Stack } from "@mantine/core";
import { useQuery } from "@tanstack/react-query";
import { Fragment, type ReactNode, useState } from "react";
import { api, data, type EventStatus, keys, type OutboxEventOut, query, useListing } from "../../api";
import {
  type Column,
  CursorTable,
  commonTexts,
  Fact,
  Facts,
  IconMailForward,
  IconRefresh,
  Id,
  JsonView,
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
import { formats, useLanguage, useText, wordFor } from "../../i18n";
import { pollEvery } from "../live/useChanges";
import { FilterBar, SelectFilter, TextFilter } from "../parts/FilterBar";
import { partTexts } from "../parts/parts.texts";
import { Views } from "../parts/Views";
import { outboxTexts } from "./outbox.texts";

const DEFAULTS = { status: "", type: "", about: "" };
const STATUSES: readonly EventStatus[] = ["PENDING", "FAILED", "DEAD", "PUBLISHED"];

/** Events on their way, and those that were given up. */
export default function OutboxPage() {
  const t = useText(outboxTexts);
  const part = useText(partTexts);
  const common = useText(commonTexts);
  const filters = useFilters(DEFAULTS);
  const { values, set } = filters;
  const [opened, setOpened] = useState<OutboxEventOut | null>(null);
  const { act } = useAct(keys.outbox.all);
  const listing = useListing<OutboxEventOut>(
    keys.outbox.events(values),
    (cursor) => {
      const { status, type, about } = values;
      const asked = query({ status: status as EventStatus, type, aggregate_id: about });
      return data(api.GET("/v1/admin/outbox/events", { params: { query: { ...asked, limit: 50, cursor } } }));
    },
    { refetchInterval: pollEvery(10_000) },
  );
  const revive = (event: OutboxEventOut) => {
    const params = { path: { outbox_event_id: event.id } };
    return act(() => data(api.POST("/v1/admin/outbox/events/{outbox_event_id}/revive", { params })), t("revivedOne"));
  };
  const columns: Column<OutboxEventOut>[] = [
    {
      key: "type",
      header: t("type"),
      width: "minmax(11rem, 1.4fr)",
      phone: "title",
      cell: (event) => <b>{breakable(event.type)}</b>,
    },
    { key: "state", header: part("state"), width: "7rem", cell: (event) => <StateBadge state={event.status} /> },
    { key: "about", header: t("about"), width: "8rem", cell: (event) => <Id id={event.aggregate_id} /> },
    { key: "tries", header: t("tries"), width: "4rem", align: "end", cell: (event) => event.tries, phone: "hidden" },
    {
      key: "next",
      header: t("next"),
      width: "7rem",
      phone: "hidden",
      cell: (event) => (event.next_try_at ? <Time at={event.next_try_at} /> : "–"),
    },
    { key: "when", header: t("when"), width: "7rem", cell: (event) => <Time at={event.created_at} /> },
    {
      key: "actions",
      header: "",
      width: "6rem",
      align: "end",
      cell: (event) =>
        event.status === "DEAD" && (
          <Button size="compact-sm" variant="default" onClick={() => void revive(event)}>
            {t("revive")}
          </Button>
        ),
    },
  ];
  return (
    <Page title={t("title")} text={t("text")}>
      <Overview />
      <FilterBar active={filters.active} onClear={filters.clear} onReload={listing.reload} actions={<Views />}>
        <SelectFilter
          label={part("state")}
          value={values.status}
          onChange={(status) => set({ status })}
          choices={STATUSES.map((value) => ({ value, label: wordFor(stateTexts, value) }))}
        />
        <TextFilter label={t("type")} value={values.type} onChange={(type) => set({ type })} />
        <TextFilter label={t("about")} value={values.about} onChange={(about) => set({ about })} />
      </FilterBar>
      <CursorTable
        label={t("title")}
        listing={listing}
        columns={columns}
        rowKey={(event) => event.id}
        onOpen={setOpened}
        empty={<NoRows filtered={filters.active} icon={IconMailForward} title={t("none")} text={t("noneText")} />}
      />
      <Drawer
        opened={opened !== null}
        onClose={() => setOpened(null)}
        position="right"
        size="lg"
        title={opened?.type}
        closeButtonProps={{ "aria-label": common("close") }}
      >
        {opened && (
          <Stack>
            <Facts>
              <Fact name={part("state")}>
                <StateBadge state={opened.status} />
              </Fact>
              <Fact name={t("when")}>
                <Time at={opened.created_at} exact />
              </Fact>
              <Fact name={t("about")}>
                <Id id={opened.aggregate_id} />
              </Fact>
              <Fact name={t("event")}>
                <Id id={opened.id} />
              </Fact>
            </Facts>
            <JsonView value={opened.data} label={t("content")} />
          </Stack>
        )}
      </Drawer>
    </Page>
  );
}

/** A name that breaks behind its dots and underscores, where it must; copied, it is the name. */
function breakable(name: string): ReactNode {
  const parts = name.split(/(?<=[._])/);
  return parts.map((part, index) => (
    <Fragment key={parts.slice(0, index).join("")}>
      {index > 0 && <wbr />}
      {part}
    </Fragment>
  ));
}

function Overview() {
  const t = useText(outboxTexts);
  const language = useLanguage();
  const confirm = useConfirm();
  const { busy, act } = useAct(keys.outbox.all);
  const query = useQuery({
    queryKey: keys.outbox.overview,
    queryFn: () => data(api.GET("/v1/admin/outbox")),
    refetchInterval: pollEvery(5000),
  });
  const found = query.data;
  if (!found) return null;
  const n = (value: number) => formats.number(value, language);
  const reviveAll = async () => {
    if (!(await confirm({ title: t("askRevive", { n: found.dead }), action: t("revive") }))) return;
    await act(async () => {
      const { revived } = await data(api.POST("/v1/admin/outbox/revive", { body: {} }));
      tell(t("revived", { n: revived }));
    });
  };
  return (
    <Panel>
      <Stack>
        <Facts>
          <Fact name={t("waiting")}>{n(found.waiting)}</Fact>
          <Fact name={t("failed")}>{n(found.failed)}</Fact>
          <Fact name={t("dead")}>
            {found.dead > 0 ? <StateBadge state="DEAD" label={n(found.dead)} /> : n(found.dead)}
          </Fact>
          <Fact name={t("oldest")}>
            {found.oldest_waiting_seconds === null
              ? "–"
              : formats.duration(found.oldest_waiting_seconds * 1000, language)}
          </Fact>
          <Fact name={t("relays")}>{found.relays.length === 0 ? t("noRelay") : n(found.relays.length)}</Fact>
          <Fact name={t("written")}>{n(found.written)}</Fact>
          {found.broker_waiting > 0 && <Fact name={t("broker")}>{n(found.broker_waiting)}</Fact>}
        </Facts>
        {found.dead > 0 && (
          <Group>
            <Button leftSection={<IconRefresh size={16} />} loading={busy} onClick={() => void reviveAll()}>
              {t("reviveAll")}
            </Button>
          </Group>
        )}
      </Stack>
    </Panel>
  );
}
