import { Button, Tabs } from "@mantine/core";
import { type ArchiveOut, api, data, keys, type PartitionOut, useListing } from "../../api";
import {
  type Column,
  CursorTable,
  Empty,
  IconArchive,
  IconCalendar,
  Id,
  Page,
  StateBadge,
  Time,
  tell,
  useAct,
  useFilters,
} from "../../components";
import { formats, useLanguage, useText } from "../../i18n";
import { partTexts } from "../parts/parts.texts";
import { archiveTexts } from "./archives.texts";

const DEFAULTS = { show: "partitions" };

/** Months of large tables: here, and gone. */
export default function ArchivesPage() {
  const t = useText(archiveTexts);
  const { values, set } = useFilters(DEFAULTS);
  const { busy, act } = useAct(keys.partitions.all);
  const ahead = () =>
    act(async () => {
      const { made } = await data(api.POST("/v1/admin/partitions"));
      tell(t("made", { n: made.length }));
    });
  return (
    <Page
      title={t("title")}
      text={t("text")}
      actions={
        values.show === "partitions" && (
          <Button
            variant="default"
            leftSection={<IconCalendar size={16} />}
            loading={busy}
            onClick={() => void ahead()}
          >
            {t("ahead")}
          </Button>
        )
      }
    >
      <Tabs value={values.show} onChange={(show) => set({ show: show ?? "partitions" })} keepMounted={false}>
        <Tabs.List mb="md">
          <Tabs.Tab value="partitions">{t("partitions")}</Tabs.Tab>
          <Tabs.Tab value="archives">{t("archives")}</Tabs.Tab>
        </Tabs.List>
        <Tabs.Panel value="partitions">
          <Partitions />
        </Tabs.Panel>
        <Tabs.Panel value="archives">
          <Archives />
        </Tabs.Panel>
      </Tabs>
    </Page>
  );
}

function Partitions() {
  const t = useText(archiveTexts);
  const part = useText(partTexts);
  const language = useLanguage();
  const listing = useListing<PartitionOut>(keys.partitions.all, () => data(api.GET("/v1/admin/partitions")));
  const n = (value: number) => formats.number(value, language);
  const columns: Column<PartitionOut>[] = [
    {
      key: "name",
      header: t("name"),
      width: "minmax(12rem, 1.6fr)",
      phone: "title",
      cell: (each) => <code>{each.name}</code>,
    },
    {
      key: "month",
      header: t("month"),
      width: "minmax(7rem, 1fr)",
      cell: (each) => each.month?.slice(0, 7) ?? t("stray"),
    },
    {
      key: "state",
      header: part("state"),
      width: "8rem",
      cell: (each) => (
        <StateBadge state={each.attached ? "alive" : "stopping"} label={each.attached ? t("attached") : t("leaving")} />
      ),
    },
    { key: "size", header: t("size"), width: "7rem", align: "end", cell: (each) => formats.bytes(each.size_bytes) },
    { key: "rows", header: t("estimated"), width: "9rem", align: "end", cell: (each) => n(each.live_rows) },
    { key: "dead", header: t("dead"), width: "7rem", align: "end", cell: (each) => n(each.dead_rows), phone: "hidden" },
  ];
  return (
    <CursorTable
      label={t("partitions")}
      listing={listing}
      columns={columns}
      rowKey={(each) => each.name}
      empty={<Empty icon={IconArchive} title={t("none")} />}
    />
  );
}

function Archives() {
  const t = useText(archiveTexts);
  const part = useText(partTexts);
  const language = useLanguage();
  const listing = useListing<ArchiveOut>(keys.archives.all, (cursor) =>
    data(api.GET("/v1/admin/archives", { params: { query: { limit: 50, cursor } } })),
  );
  const columns: Column<ArchiveOut>[] = [
    {
      key: "table",
      header: t("table"),
      width: "minmax(9rem, 1.2fr)",
      phone: "title",
      cell: (each) => (
        <>
          <code>{each.table}</code> {each.month.slice(0, 7)}
          {each.restored_as && (
            <>
              <br />
              <small>{t("restored", { name: each.restored_as })}</small>
            </>
          )}
        </>
      ),
    },
    { key: "state", header: part("state"), width: "8rem", cell: (each) => <StateBadge state={each.status} /> },
    {
      key: "rows",
      header: t("rows"),
      width: "7rem",
      align: "end",
      cell: (each) => (each.rows === null ? "–" : formats.number(each.rows, language)),
    },
    {
      key: "size",
      header: t("size"),
      width: "7rem",
      align: "end",
      cell: (each) => (each.size_bytes === null ? "–" : formats.bytes(each.size_bytes)),
    },
    { key: "left", header: t("left"), width: "8rem", cell: (each) => <Time at={each.detached_at} /> },
    { key: "verified", header: t("verified"), width: "8rem", cell: (each) => <Time at={each.verified_at} /> },
    {
      key: "hash",
      header: t("hash"),
      width: "8rem",
      phone: "hidden",
      cell: (each) => each.sha256 && <Id id={each.sha256} />,
    },
  ];
  return (
    <CursorTable
      label={t("archives")}
      listing={listing}
      columns={columns}
      rowKey={(each) => each.id}
      empty={<Empty icon={IconArchive} title={t("none")} text={t("noneText")} />}
    />
  );
}
