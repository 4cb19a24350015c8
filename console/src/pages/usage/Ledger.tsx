import { Button, Group, Text } from "@mantine/core";
import { api, data, type EntryOut, keys, useListing } from "../../api";
import { type Column, CursorTable, Empty, IconDownload, IconReceipt, StateBadge, Time } from "../../components";
import { useLanguage, useText, wordFor } from "../../i18n";
import { type MergedEntry, merged } from "./merged";
import { usageTexts } from "./usage.texts";

const TONES = { held: "waiting", used: "neutral", released: "neutral", granted: "good", returned: "good" } as const;

/** What was granted and used, newest first: one row for each order. */
export function Ledger() {
  const t = useText(usageTexts);
  useLanguage();
  const listing = useListing<EntryOut>(keys.usage.ledger, (cursor) =>
    data(api.GET("/v1/usage", { params: { query: { limit: 50, cursor } } })),
  );
  const rows = { ...listing, items: merged(listing.items) };
  const columns: Column<MergedEntry>[] = [
    {
      key: "what",
      header: t("what"),
      width: "minmax(10rem, 2fr)",
      phone: "title",
      cell: (row) => (
        <Text size="sm" truncate>
          {row.title ?? reasonOf(row.last)}
        </Text>
      ),
    },
    {
      key: "units",
      header: t("units"),
      width: "6rem",
      align: "end",
      cell: (row) => (
        <Text size="sm" fw={600} className="figures">
          {row.units === 0 ? "0" : row.units > 0 ? `−${row.units}` : `+${-row.units}`}
        </Text>
      ),
    },
    {
      key: "state",
      header: t("state"),
      width: "9rem",
      cell: (row) => <StateBadge state={row.state} label={t(`state-${row.state}`)} tone={TONES[row.state]} />,
    },
    { key: "at", header: t("when"), width: "9rem", cell: (row) => <Time at={row.last.created_at} /> },
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
        listing={rows}
        columns={columns}
        rowKey={(row) => row.key}
        href={(row) => (row.taskId ? `/tasks/${row.taskId}` : "/usage")}
        empty={<Empty icon={IconReceipt} title={t("noEntries")} />}
      />
    </>
  );
}

/** Why units came or went without a file: an operator's own words, or ours. */
function reasonOf({ source, remark }: EntryOut): string {
  return (source === "MANUAL_ADJUST" && remark) || wordFor(usageTexts, source);
}
