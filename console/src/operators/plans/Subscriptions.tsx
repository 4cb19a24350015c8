import { api, data, keys, type SubscriptionOut, useListing } from "../../api";
import { type Column, CursorTable, commonTexts, Empty, IconCreditCard, Id, StateBadge, Time } from "../../components";
import { useText } from "../../i18n";
import { partTexts } from "../parts/parts.texts";
import { planTexts } from "./plans.texts";
import { usePlanNames } from "./usePlanNames";

/** Who has which plan, and until when. */
export function Subscriptions() {
  const t = useText(planTexts);
  const part = useText(partTexts);
  const common = useText(commonTexts);
  const names = usePlanNames();
  const listing = useListing<SubscriptionOut>(keys.subscriptions.list, (cursor) =>
    data(api.GET("/v1/subscriptions", { params: { query: { user_id: "*", limit: 50, cursor } } })),
  );
  const columns: Column<SubscriptionOut>[] = [
    {
      key: "plan",
      header: t("plan"),
      width: "minmax(8rem, 1fr)",
      phone: "title",
      cell: (each) => names.get(each.plan_id) ?? <Id id={each.plan_id} />,
    },
    { key: "state", header: part("state"), width: "8rem", cell: (each) => <StateBadge state={each.status} /> },
    { key: "user", header: t("user"), width: "8rem", cell: (each) => <Id id={each.user_id} /> },
    {
      key: "since",
      header: t("since"),
      width: "9rem",
      cell: (each) => (each.started_at ? <Time at={each.started_at} /> : "–"),
      phone: "hidden",
    },
    {
      key: "until",
      header: t("until"),
      width: "9rem",
      cell: (each) => (each.expire_at ? <Time at={each.expire_at} /> : "–"),
    },
    {
      key: "renews",
      header: t("renews"),
      width: "9rem",
      cell: (each) => (each.auto_renew ? common("yes") : common("no")),
    },
  ];
  return (
    <CursorTable
      label={t("subscriptions")}
      listing={listing}
      columns={columns}
      rowKey={(each) => each.id}
      empty={<Empty icon={IconCreditCard} title={t("noSubscriptions")} />}
    />
  );
}
