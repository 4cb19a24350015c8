import { Button, Menu } from "@mantine/core";
import { useDisclosure } from "@mantine/hooks";
import { type Action, api, data, type EventOut, keys, type ListAuditEventsData, query, useListing } from "../../api";
import {
  type Column,
  CursorTable,
  IconChevronDown,
  IconDownload,
  IconShieldCheck,
  NoRows,
  Page,
  StateBadge,
  Time,
  useFilters,
} from "../../components";
import { useText, wordFor } from "../../i18n";
import { FilterBar, RangeFilter, SelectFilter, TextFilter, useSince } from "../parts/FilterBar";
import { Views } from "../parts/Views";
import classes from "./Audit.module.css";
import { actionTexts, auditTexts, kindTexts } from "./audit.texts";
import { badgeOf } from "./badge";
import { Verify } from "./Verify";

type Kind = NonNullable<NonNullable<ListAuditEventsData["query"]>["resource_type"]>;

const DEFAULTS = { q: "", action: "", resource_type: "", resource_id: "", user_id: "", range: "" };

const EVERYTHING = "*";

/** The trail: searched, filtered in the address, exported, verified. */
export default function AuditPage() {
  const t = useText(auditTexts);
  const [verifying, { open, close }] = useDisclosure(false);
  const filters = useFilters(DEFAULTS);
  const { values, set } = filters;
  const since = useSince(values.range);
  const { q, action, resource_type, resource_id, user_id } = values;
  const asked = query({
    q,
    changes: action === "" || undefined,
    action: action === EVERYTHING ? undefined : (action as Action),
    resource_type: resource_type as Kind,
    resource_id,
    user_id,
    created_after: since,
  });
  const listing = useListing<EventOut>(keys.audit.list(asked), (cursor) =>
    data(api.GET("/v1/audit/events", { params: { query: { ...asked, limit: 50, cursor } } })),
  );
  const columns: Column<EventOut>[] = [
    {
      key: "what",
      header: t("what"),
      width: "minmax(13rem, 2fr)",
      phone: "title",
      cell: (event) => (
        <div className={classes.what}>
          <span className={classes.kind}>{wordFor(kindTexts, event.resource_type)}</span> {nameOf(event)}
        </div>
      ),
    },
    {
      key: "action",
      header: t("action"),
      width: "8rem",
      cell: (event) => <StateBadge state={event.action} {...badgeOf(event)} />,
    },
    {
      key: "who",
      header: t("who"),
      width: "minmax(7rem, 1fr)",
      cell: (event) => event.user.username || event.user.uid,
    },
    { key: "from", header: t("from"), width: "9rem", cell: (event) => event.client_ip ?? "–", phone: "hidden" },
    { key: "when", header: t("when"), width: "9rem", cell: (event) => <Time at={event.created_at} /> },
  ];
  const exported = (format: string) =>
    `/v1/audit/export?${new URLSearchParams(Object.entries({ ...asked, format }).map(([name, value]) => [name, String(value)]))}`;
  return (
    <Page
      title={t("title")}
      text={t("text")}
      actions={
        <>
          <Menu position="bottom-end">
            <Menu.Target>
              <Button
                variant="default"
                leftSection={<IconDownload size={16} />}
                rightSection={<IconChevronDown size={14} />}
              >
                {t("export")}
              </Button>
            </Menu.Target>
            <Menu.Dropdown>
              <Menu.Item component="a" href={exported("jsonl")} download>
                {t("exportJsonl")}
              </Menu.Item>
              <Menu.Item component="a" href={exported("csv")} download>
                {t("exportCsv")}
              </Menu.Item>
            </Menu.Dropdown>
          </Menu>
          <Button leftSection={<IconShieldCheck size={16} />} onClick={open}>
            {t("verify")}
          </Button>
        </>
      }
    >
      <FilterBar active={filters.active} onClear={filters.clear} onReload={listing.reload} actions={<Views />}>
        <TextFilter
          label={t("search")}
          hint={t("searchHint")}
          value={values.q}
          onChange={(q) => set({ q })}
          width={220}
        />
        <SelectFilter
          label={t("action")}
          value={values.action}
          onChange={(action) => set({ action })}
          all={t("changes")}
          choices={[
            { value: EVERYTHING, label: t("everything") },
            ...Object.keys(actionTexts.en).map((value) => ({ value, label: wordFor(actionTexts, value) })),
          ]}
        />
        <SelectFilter
          label={t("resource")}
          value={values.resource_type}
          onChange={(resource_type) => set({ resource_type })}
          choices={Object.keys(kindTexts.en).map((value) => ({ value, label: wordFor(kindTexts, value) }))}
        />
        <TextFilter
          label={t("resourceId")}
          value={values.resource_id}
          onChange={(resource_id) => set({ resource_id })}
        />
        <TextFilter label={t("by")} value={values.user_id} onChange={(user_id) => set({ user_id })} />
        <RangeFilter value={values.range} onChange={(range) => set({ range })} />
      </FilterBar>
      <CursorTable
        label={t("title")}
        listing={listing}
        columns={columns}
        rowKey={(event) => event.id}
        href={(event) => `/operators/audit/${event.id}`}
        empty={
          <NoRows
            filtered={filters.active}
            advice={values.q !== "" && t("searchWhole")}
            icon={IconShieldCheck}
            title={t("none")}
            text={t("noneText")}
          />
        }
      />
      <Verify opened={verifying} onClose={close} />
    </Page>
  );
}

export function nameOf(event: EventOut): string {
  const facts = event.resource.data ?? {};
  return facts.title ?? facts.name ?? facts.username ?? event.resource.identifier;
}
