import { api, type BulkOut, data, keys, useListing } from "../../api";
import { type Column, CursorTable, Empty, IconStack2, Id, Page, StateBadge, Time } from "../../components";
import { formats, useLanguage, useText } from "../../i18n";
import { pollEvery } from "../live/useChanges";
import { bulkName } from "./bulkWords";
import { bulkTexts } from "./tasks.texts";

/** Actions on many rows, newest first. */
export default function BulksPage() {
  const t = useText(bulkTexts);
  const language = useLanguage();
  const listing = useListing<BulkOut>(
    keys.bulk.list,
    (cursor) => data(api.GET("/v1/tasks/bulk", { params: { query: { limit: 50, cursor } } })),
    { refetchInterval: pollEvery(10_000) },
  );
  const n = (value: number) => formats.number(value, language);
  const columns: Column<BulkOut>[] = [
    { key: "action", header: t("action"), width: "minmax(10rem, 1.5fr)", phone: "title", cell: bulkName },
    {
      key: "state",
      header: t("state"),
      width: "9rem",
      cell: (bulk) =>
        bulk.finished_at ? <StateBadge state="DONE" /> : <StateBadge state="OPEN" label={t("unfinished")} />,
    },
    { key: "matched", header: t("matched"), align: "end", width: "6rem", cell: (bulk) => n(bulk.matched) },
    { key: "done", header: t("done"), align: "end", width: "6rem", cell: (bulk) => n(bulk.done) },
    { key: "refused", header: t("refused"), align: "end", width: "6rem", cell: (bulk) => n(bulk.refused) },
    { key: "asked", header: t("asked"), width: "9rem", cell: (bulk) => <Time at={bulk.created_at} /> },
    { key: "by", header: t("by"), width: "8rem", phone: "hidden", cell: (bulk) => <Id id={bulk.user_id} /> },
  ];
  return (
    <Page title={t("list")} text={t("listText")}>
      <CursorTable
        label={t("list")}
        listing={listing}
        columns={columns}
        rowKey={(bulk) => bulk.task_id}
        href={(bulk) => `/operators/tasks/bulk/${bulk.task_id}`}
        empty={<Empty icon={IconStack2} title={t("none")} text={t("noneText")} />}
      />
    </Page>
  );
}
