import { useState } from "react";
import { api, data, keys, type OrderOut, useListing } from "../../api";
import { type Column, CursorTable, Empty, IconCreditCard, Id, StateBadge, Time } from "../../components";
import { formats, useLanguage, useText } from "../../i18n";
import { PayDialog } from "./PayDialog";
import { usageTexts } from "./usage.texts";

export function Orders() {
  const t = useText(usageTexts);
  const language = useLanguage();
  const [open, setOpen] = useState<OrderOut | null>(null);
  const listing = useListing<OrderOut>(keys.usage.orders, (cursor) =>
    data(api.GET("/v1/payments", { params: { query: { limit: 50, cursor } } })),
  );
  const columns: Column<OrderOut>[] = [
    {
      key: "description",
      header: t("plan"),
      width: "minmax(10rem, 1.5fr)",
      phone: "title",
      cell: (order) => order.description,
    },
    {
      key: "amount",
      header: t("amount"),
      width: "8rem",
      align: "end",
      cell: (order) => <span className="figures">{formats.money(order.amount_cents, order.currency, language)}</span>,
    },
    { key: "status", header: t("state"), width: "8rem", cell: (order) => <StateBadge state={order.status} /> },
    { key: "id", header: "Id", width: "9rem", phone: "hidden", cell: (order) => <Id id={order.id} /> },
    { key: "at", header: t("when"), width: "9rem", cell: (order) => <Time at={order.created_at} /> },
  ];
  return (
    <>
      <CursorTable
        label={t("orders")}
        listing={listing}
        columns={columns}
        rowKey={(order) => order.id}
        onOpen={setOpen}
        empty={<Empty icon={IconCreditCard} title={t("noOrders")} />}
      />
      {open && <PayDialog order={open} onClose={() => setOpen(null)} />}
    </>
  );
}
