import { Button, Text } from "@mantine/core";
import { useState } from "react";
import { api, data, type EndpointOut, keys, useListing } from "../../api";
import { type Column, CursorTable, Empty, IconPlus, IconWebhook, Page, StateBadge, Time } from "../../components";
import { useText } from "../../i18n";
import { EndpointForm } from "./EndpointForm";
import { healthOf } from "./health";
import { webhookTexts } from "./webhooks.texts";

export default function WebhooksPage() {
  const t = useText(webhookTexts);
  const [adding, setAdding] = useState(false);
  const listing = useListing<EndpointOut>(keys.webhooks.endpoints, (cursor) =>
    data(api.GET("/v1/webhooks/endpoints", { params: { query: { limit: 50, cursor } } })),
  );
  const columns: Column<EndpointOut>[] = [
    {
      key: "name",
      header: t("name"),
      width: "minmax(8rem, 1fr)",
      phone: "title",
      cell: (endpoint) => (
        <Text size="sm" fw={600} truncate>
          {endpoint.name}
        </Text>
      ),
    },
    {
      key: "url",
      header: t("url"),
      width: "minmax(10rem, 1.6fr)",
      cell: (endpoint) => (
        <Text size="sm" c="dimmed" truncate>
          {endpoint.url}
        </Text>
      ),
    },
    { key: "status", header: t("state"), width: "8rem", cell: (endpoint) => <StateBadge state={healthOf(endpoint)} /> },
    {
      key: "events",
      header: t("events"),
      width: "minmax(6rem, 1fr)",
      phone: "hidden",
      cell: (endpoint) => (
        <Text size="sm" c="dimmed" truncate>
          {endpoint.subscribed_events.join(", ")}
        </Text>
      ),
    },
    { key: "created", header: t("created"), width: "9rem", cell: (endpoint) => <Time at={endpoint.created_at} /> },
  ];
  const add = (
    <Button leftSection={<IconPlus size={16} />} onClick={() => setAdding(true)}>
      {t("add")}
    </Button>
  );
  return (
    <Page title={t("title")} text={t("text")} actions={add}>
      <CursorTable
        label={t("title")}
        listing={listing}
        columns={columns}
        rowKey={(endpoint) => endpoint.id}
        href={(endpoint) => `/webhooks/${endpoint.id}`}
        empty={<Empty icon={IconWebhook} title={t("none")} text={t("noneText")} action={add} />}
      />
      {adding && <EndpointForm onClose={() => setAdding(false)} />}
    </Page>
  );
}
