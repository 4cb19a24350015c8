import { api, data, type EndpointOut, keys, useListing } from "../../api";
import { type Column, CursorTable, Empty, IconWebhook, Page, Time } from "../../components";
import { useText } from "../../i18n";
import { useEndpointColumns } from "../../pages/webhooks/columns";
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
  const { name, url, state, created } = useEndpointColumns();
  const failing: Column<EndpointOut> = {
    key: "failing",
    header: t("failingSince"),
    width: "9rem",
    cell: (endpoint) => (endpoint.failing_since ? <Time at={endpoint.failing_since} /> : "–"),
  };
  const owner: Column<EndpointOut> = {
    key: "owner",
    header: part("ownedBy"),
    width: "8rem",
    cell: (endpoint) => <OwnerName id={endpoint.user_id} names={names} />,
  };
  return (
    <Page title={t("everybodys")} text={t("everybodysText")}>
      <CursorTable
        label={t("everybodys")}
        listing={listing}
        columns={[name, state, failing, url, owner, created]}
        rowKey={(endpoint) => endpoint.id}
        href={(endpoint) => `/webhooks/${endpoint.id}`}
        empty={<Empty icon={IconWebhook} title={t("none")} />}
      />
    </Page>
  );
}
