import { Text } from "@mantine/core";
import { api, data, type EndpointOut, keys, useListing } from "../../api";
import { type Column, CursorTable, Empty, IconWebhook, Page, StateBadge, Time } from "../../components";
import { useText } from "../../i18n";
import { healthOf } from "../../pages/webhooks/health";
import { webhookTexts } from "../../pages/webhooks/webhooks.texts";
import { OwnerName, useUserNames } from "../parts/OwnerName";
import { partTexts } from "../parts/parts.texts";

/** The endpoints of all users, with what is known of their health. */
export default function WebhooksPage() {
  const t = useText(webhookTexts);
  const part = useText(partTexts);
  const listing = useListing<EndpointOut>(keys.webhooks.everybodys, (cursor) =>
    data(api.GET("/v1/webhooks/endpoints", { params: { query: { user_id: "*", limit: 50, cursor } } })),
  );
  const names = useUserNames(listing.items.map((endpoint) => endpoint.user_id));
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
    { key: "state", header: t("state"), width: "8rem", cell: (endpoint) => <StateBadge state={healthOf(endpoint)} /> },
    {
      key: "failing",
      header: t("failingSince"),
      width: "9rem",
      cell: (endpoint) => (endpoint.failing_since ? <Time at={endpoint.failing_since} /> : "–"),
    },
    {
      key: "url",
      header: t("url"),
      width: "minmax(10rem, 1.6fr)",
      phone: "hidden",
      cell: (endpoint) => (
        <Text size="sm" c="dimmed" truncate>
          {endpoint.url}
        </Text>
      ),
    },
    {
      key: "owner",
      header: part("ownedBy"),
      width: "8rem",
      cell: (endpoint) => <OwnerName id={endpoint.user_id} names={names} />,
    },
    { key: "created", header: t("created"), width: "8rem", cell: (endpoint) => <Time at={endpoint.created_at} /> },
  ];
  return (
    <Page title={t("everybodys")} text={t("everybodysText")}>
      <CursorTable
        label={t("everybodys")}
        listing={listing}
        columns={columns}
        rowKey={(endpoint) => endpoint.id}
        href={(endpoint) => `/webhooks/${endpoint.id}`}
        empty={<Empty icon={IconWebhook} title={t("none")} />}
      />
    </Page>
  );
}
