import { Button, Group, Text, TextInput } from "@mantine/core";
import { useState } from "react";
import { api, data, keys, type OrderOut, useListing } from "../../api";
import {
  type Column,
  CursorTable,
  Empty,
  FormDialog,
  IconCreditCard,
  Id,
  StateBadge,
  Time,
  tell,
} from "../../components";
import { formats, useLanguage, useText, wordFor } from "../../i18n";
import { partTexts } from "../parts/parts.texts";
import { TitleCell } from "../parts/TitleCell";
import { planTexts, problemTexts } from "./plans.texts";
import { usePlanNames } from "./usePlanNames";

/** What was paid, or is to be; with a way to give it back. */
export function Orders({ problem }: { problem: boolean }) {
  const t = useText(planTexts);
  const part = useText(partTexts);
  const language = useLanguage();
  const names = usePlanNames();
  const [asked, setAsked] = useState<{ order: OrderOut; verb: "refund" | "resolve" } | null>(null);
  const listing = useListing<OrderOut>(keys.payments.list(problem), (cursor) => {
    const query = { user_id: "*", limit: 50, problem: problem || undefined, cursor };
    return data(api.GET("/v1/payments", { params: { query } }));
  });
  const columns: Column<OrderOut>[] = [
    {
      key: "plan",
      header: t("plan"),
      width: "minmax(12rem, 1fr)",
      phone: "title",
      cell: (order) => (
        <TitleCell
          title={names.get(order.plan_id) ?? order.description}
          error={order.problem && wordFor(problemTexts, order.problem)}
        />
      ),
    },
    { key: "state", header: part("state"), width: "7rem", cell: (order) => <StateBadge state={order.status} /> },
    {
      key: "amount",
      header: t("amount"),
      width: "7rem",
      align: "end",
      cell: (order) => formats.money(order.amount_cents, order.currency, language),
    },
    { key: "user", header: t("user"), width: "8rem", cell: (order) => <Id id={order.user_id} />, phone: "hidden" },
    {
      key: "paid",
      header: t("paid"),
      width: "7.5rem",
      cell: (order) => (order.paid_at ? <Time at={order.paid_at} /> : "–"),
    },
    {
      key: "actions",
      header: "",
      width: "9.5rem",
      align: "end",
      cell: (order) => (
        <Group gap="xs" justify="flex-end" wrap="nowrap">
          {order.problem && (
            <Button size="compact-sm" variant="default" onClick={() => setAsked({ order, verb: "resolve" })}>
              {t("resolve")}
            </Button>
          )}
          {order.status === "PAID" && (
            <Button size="compact-sm" variant="default" onClick={() => setAsked({ order, verb: "refund" })}>
              {t("refund")}
            </Button>
          )}
        </Group>
      ),
    },
  ];
  return (
    <>
      <CursorTable
        label={t("orders")}
        listing={listing}
        columns={columns}
        rowKey={(order) => order.id}
        empty={<Empty icon={IconCreditCard} title={t("noOrders")} />}
      />
      {asked && <Reason {...asked} onClose={() => setAsked(null)} />}
    </>
  );
}

function Reason({ order, verb, onClose }: { order: OrderOut; verb: "refund" | "resolve"; onClose: () => void }) {
  const t = useText(planTexts);
  const [reason, setReason] = useState("");
  const save = async () => {
    const options = { params: { path: { order_id: order.id } }, body: { reason } };
    await data(api.POST(`/v1/admin/payments/{order_id}/${verb}`, options));
    tell(t("done"));
    onClose();
  };
  return (
    <FormDialog
      title={verb === "refund" ? t("askRefund") : t("askResolve")}
      onSave={save}
      changes={keys.payments.all}
      danger={verb === "refund"}
      action={t(verb)}
      onClose={onClose}
    >
      <Text size="sm">{verb === "refund" ? t("refundText") : t("resolveText")}</Text>
      <TextInput
        label={t("reason")}
        required
        data-autofocus
        value={reason}
        onChange={(event) => setReason(event.currentTarget.value)}
      />
    </FormDialog>
  );
}
