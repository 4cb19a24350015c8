import { Anchor, Button, Group, Text } from "@mantine/core";
import { Link } from "react-router";
import { api, data, type EntryOut, keys, useListing } from "../../api";
import {
  type Column,
  CursorTable,
  Empty,
  EntryState,
  EntryUnits,
  IconDownload,
  IconReceipt,
  Id,
  Time,
} from "../../components";
import { useLanguage, useText, wordFor } from "../../i18n";
import { usageTexts } from "./usage.texts";

/** Every entry of the ledger, newest first. */
export function Ledger() {
  const t = useText(usageTexts);
  useLanguage();
  const listing = useListing<EntryOut>(keys.usage.ledger, (cursor) =>
    data(api.GET("/v1/usage", { params: { query: { limit: 50, cursor } } })),
  );
  const columns: Column<EntryOut>[] = [
    {
      key: "source",
      header: t("what"),
      width: "minmax(10rem, 1.4fr)",
      phone: "title",
      cell: (entry) => (
        <div>
          <Text size="sm">{wordFor(usageTexts, entry.source)}</Text>
          {entry.remark && (
            <Text size="xs" c="dimmed" truncate>
              {entry.remark}
            </Text>
          )}
        </div>
      ),
    },
    {
      key: "units",
      header: t("units"),
      width: "6rem",
      align: "end",
      cell: (entry) => <EntryUnits entry={entry} />,
    },
    {
      key: "status",
      header: t("state"),
      width: "8rem",
      cell: (entry) => <EntryState entry={entry} />,
    },
    {
      key: "task",
      header: t("task"),
      width: "9rem",
      phone: "hidden",
      cell: (entry) =>
        entry.task_id ? (
          <Anchor component={Link} to={`/tasks/${entry.task_id}`} size="sm">
            {t("task")}
          </Anchor>
        ) : entry.entitlement_id ? (
          <Id id={entry.entitlement_id} />
        ) : null,
    },
    { key: "at", header: t("when"), width: "9rem", cell: (entry) => <Time at={entry.created_at} /> },
  ];
  return (
    <>
      <Group justify="space-between" mb="sm">
        <Text size="sm" c="dimmed">
          {t("ledgerText")}
        </Text>
        <Button
          component="a"
          href="/v1/usage/export"
          download
          variant="default"
          size="xs"
          leftSection={<IconDownload size={14} />}
        >
          {t("export")}
        </Button>
      </Group>
      <CursorTable
        label={t("ledger")}
        listing={listing}
        columns={columns}
        rowKey={(entry) => entry.id}
        empty={<Empty icon={IconReceipt} title={t("noEntries")} />}
      />
    </>
  );
}
