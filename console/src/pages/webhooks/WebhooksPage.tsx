import { Button, Text } from "@mantine/core";
import { useState } from "react";
import { api, data, type EndpointOut, keys, useListing } from "../../api";
import { type Column, CursorTable, Empty, IconPlus, IconWebhook, Page } from "../../components";
import { useText } from "../../i18n";
import { useEndpointColumns } from "./columns";
import { EndpointForm } from "./EndpointForm";
import { webhookTexts } from "./webhooks.texts";

export default function WebhooksPage() {
  const t = useText(webhookTexts);
  const [adding, setAdding] = useState(false);
  const listing = useListing<EndpointOut>(keys.webhooks.endpoints, (cursor) =>
    data(api.GET("/v1/webhooks/endpoints", { params: { query: { limit: 50, cursor } } })),
  );
  const { name, url, state, created } = useEndpointColumns();
  const events: Column<EndpointOut> = {
    key: "events",
    header: t("events"),
    width: "minmax(6rem, 1fr)",
    phone: "hidden",
    cell: (endpoint) => (
      <Text size="sm" c="dimmed" truncate>
        {endpoint.subscribed_events.join(", ")}
      </Text>
    ),
  };
  const add = (
    <Button leftSection={<IconPlus size={16} />} onClick={() => setAdding(true)}>
      {t("add")}
    </Button>
  );
  return (
    <Page title={t("title")} text={t("text")} actions={listing.items.length > 0 && add}>
      <CursorTable
        label={t("title")}
        listing={listing}
        columns={[name, url, state, events, created]}
        rowKey={(endpoint) => endpoint.id}
        href={(endpoint) => `/webhooks/${endpoint.id}`}
        empty={<Empty icon={IconWebhook} title={t("none")} text={t("noneText")} action={add} />}
      />
      {adding && <EndpointForm onClose={() => setAdding(false)} />}
    </Page>
  );
}
