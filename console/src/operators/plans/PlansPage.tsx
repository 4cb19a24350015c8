import { Button, Group, JsonInput, Modal, NumberInput, Stack, Switch, Tabs, Text, TextInput } from "@mantine/core";
import { useQuery } from "@tanstack/react-query";
import { useState } from "react";
import { api, data, ifMatch, type OrderOut, type PlanOut, type SubscriptionOut, useListing } from "../../api";
import {
  type Column,
  CursorTable,
  commonTexts,
  Empty,
  IconCreditCard,
  IconPlus,
  Id,
  Page,
  StateBadge,
  Time,
  useFilters,
} from "../../components";
import { formats, useLanguage, useText } from "../../i18n";
import { partTexts } from "../parts/parts.texts";
import { useAct } from "../parts/useAct";
import { planTexts } from "./plans.texts";

const DEFAULTS = { show: "plans", problem: "" };

/** Plans, who has them, and what was paid for them. */
export default function PlansPage() {
  const t = useText(planTexts);
  const { values, set } = useFilters(DEFAULTS);
  const [editing, setEditing] = useState<PlanOut | "new" | null>(null);
  return (
    <Page
      title={t("title")}
      text={t("text")}
      actions={
        values.show === "plans" && (
          <Button leftSection={<IconPlus size={16} />} onClick={() => setEditing("new")}>
            {t("create")}
          </Button>
        )
      }
    >
      <Tabs value={values.show} onChange={(show) => set({ show: show ?? "plans" })} keepMounted={false}>
        <Tabs.List mb="md">
          <Tabs.Tab value="plans">{t("plans")}</Tabs.Tab>
          <Tabs.Tab value="subscriptions">{t("subscriptions")}</Tabs.Tab>
          <Tabs.Tab value="orders">{t("orders")}</Tabs.Tab>
        </Tabs.List>
        <Tabs.Panel value="plans">
          <Plans onEdit={setEditing} />
        </Tabs.Panel>
        <Tabs.Panel value="subscriptions">
          <Subscriptions />
        </Tabs.Panel>
        <Tabs.Panel value="orders">
          <Stack>
            <Switch
              label={t("onlyProblems")}
              checked={values.problem !== ""}
              onChange={(event) => set({ problem: event.currentTarget.checked ? "yes" : "" })}
            />
            <Orders problem={values.problem !== ""} />
          </Stack>
        </Tabs.Panel>
      </Tabs>
      {editing && (
        <PlanForm
          key={editing === "new" ? "new" : editing.id}
          plan={editing === "new" ? null : editing}
          onClose={() => setEditing(null)}
        />
      )}
    </Page>
  );
}

function usePlanNames(): Map<string, string> {
  const query = useQuery({
    queryKey: ["plans", "names"],
    queryFn: () => data(api.GET("/v1/admin/plans", { params: { query: { limit: 100 } } })),
    staleTime: 60_000,
  });
  return new Map((query.data?.items ?? []).map((plan) => [plan.id, plan.name]));
}

function Plans({ onEdit }: { onEdit: (plan: PlanOut) => void }) {
  const t = useText(planTexts);
  const language = useLanguage();
  const listing = useListing<PlanOut>(["plans", "all"], (cursor) =>
    data(api.GET("/v1/admin/plans", { params: { query: { limit: 50, ...(cursor ? { cursor } : {}) } } })),
  );
  const columns: Column<PlanOut>[] = [
    {
      key: "name",
      header: t("name"),
      width: "minmax(9rem, 1.5fr)",
      phone: "title",
      cell: (plan) => <b>{plan.name}</b>,
    },
    {
      key: "state",
      header: "",
      width: "8rem",
      cell: (plan) => (
        <StateBadge
          state={plan.is_active ? "enabled" : "disabled"}
          label={plan.is_active ? t("offered") : t("withdrawn")}
        />
      ),
    },
    {
      key: "price",
      header: t("price"),
      width: "8rem",
      align: "end",
      cell: (plan) => formats.money(plan.price_cents, plan.currency, language),
    },
    {
      key: "quota",
      header: t("quota"),
      width: "8rem",
      align: "end",
      cell: (plan) => formats.number(plan.monthly_quota, language),
    },
    {
      key: "changed",
      header: t("changed"),
      width: "9rem",
      cell: (plan) => <Time at={plan.updated_at} />,
      phone: "hidden",
    },
    {
      key: "edit",
      header: "",
      width: "7rem",
      align: "end",
      cell: (plan) => (
        <Button size="compact-sm" variant="default" onClick={() => onEdit(plan)}>
          {t("edit")}
        </Button>
      ),
    },
  ];
  return (
    <CursorTable
      label={t("plans")}
      listing={listing}
      columns={columns}
      rowKey={(plan) => plan.id}
      empty={<Empty icon={IconCreditCard} title={t("noPlans")} text={t("noPlansText")} />}
    />
  );
}

function PlanForm({ plan, onClose }: { plan: PlanOut | null; onClose: () => void }) {
  const t = useText(planTexts);
  const part = useText(partTexts);
  const common = useText(commonTexts);
  const { busy, act } = useAct(["plans"]);
  const [form, setForm] = useState({
    name: plan?.name ?? "",
    price_cents: plan?.price_cents ?? 0,
    currency: plan?.currency ?? "CNY",
    monthly_quota: plan?.monthly_quota ?? 100,
    sort_order: plan?.sort_order ?? 0,
    is_active: plan?.is_active ?? true,
  });
  const [features, setFeatures] = useState(JSON.stringify(plan?.features ?? [], null, 2));
  const parsed = parseList(features);
  const set = (changes: Partial<typeof form>) => setForm((before) => ({ ...before, ...changes }));
  const save = async () => {
    const body = { ...form, features: (parsed ?? []) as never[] };
    const done = await act(
      () =>
        plan === null
          ? data(api.POST("/v1/admin/plans", { body }))
          : data(
              api.PATCH("/v1/admin/plans/{plan_id}", {
                params: { path: { plan_id: plan.id } },
                headers: ifMatch(plan.version),
                body,
              }),
            ),
      t("saved"),
    );
    if (done) onClose();
  };
  return (
    <Modal
      opened
      onClose={onClose}
      title={<Text fw={650}>{plan?.name ?? t("create")}</Text>}
      closeButtonProps={{ "aria-label": common("close") }}
    >
      <form
        onSubmit={(event) => {
          event.preventDefault();
          void save();
        }}
      >
        <Stack>
          <TextInput
            label={t("name")}
            required
            data-autofocus
            value={form.name}
            onChange={(event) => set({ name: event.currentTarget.value })}
          />
          <Group grow>
            <NumberInput
              label={t("cents")}
              min={0}
              value={form.price_cents}
              onChange={(value) => set({ price_cents: Number(value) })}
            />
            <TextInput
              label={t("currency")}
              maxLength={3}
              value={form.currency}
              onChange={(event) => set({ currency: event.currentTarget.value.toUpperCase() })}
            />
          </Group>
          <Group grow>
            <NumberInput
              label={t("quota")}
              min={0}
              value={form.monthly_quota}
              onChange={(value) => set({ monthly_quota: Number(value) })}
            />
            <NumberInput
              label={t("order")}
              value={form.sort_order}
              onChange={(value) => set({ sort_order: Number(value) })}
            />
          </Group>
          <JsonInput
            label={t("features")}
            autosize
            minRows={3}
            maxRows={14}
            value={features}
            onChange={setFeatures}
            error={parsed === null ? part("notJson", { why: "[…]" }) : undefined}
          />
          <Switch
            label={t("isOffered")}
            checked={form.is_active}
            onChange={(event) => set({ is_active: event.currentTarget.checked })}
          />
          <Group justify="flex-end">
            <Button variant="default" onClick={onClose}>
              {common("cancel")}
            </Button>
            <Button type="submit" loading={busy} disabled={parsed === null}>
              {common("save")}
            </Button>
          </Group>
        </Stack>
      </form>
    </Modal>
  );
}

function parseList(text: string): unknown[] | null {
  try {
    const value: unknown = JSON.parse(text);
    return Array.isArray(value) ? value : null;
  } catch {
    return null;
  }
}

function Subscriptions() {
  const t = useText(planTexts);
  const part = useText(partTexts);
  const common = useText(commonTexts);
  const names = usePlanNames();
  const listing = useListing<SubscriptionOut>(["subscriptions", "all"], (cursor) =>
    data(
      api.GET("/v1/subscriptions", { params: { query: { user_id: "*", limit: 50, ...(cursor ? { cursor } : {}) } } }),
    ),
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
    { key: "since", header: t("since"), width: "9rem", cell: (each) => <Time at={each.started_at} />, phone: "hidden" },
    { key: "until", header: t("until"), width: "9rem", cell: (each) => <Time at={each.expire_at} /> },
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

function Orders({ problem }: { problem: boolean }) {
  const t = useText(planTexts);
  const part = useText(partTexts);
  const language = useLanguage();
  const names = usePlanNames();
  const [asked, setAsked] = useState<{ order: OrderOut; verb: "refund" | "resolve" } | null>(null);
  const listing = useListing<OrderOut>(["payments", "all", problem], (cursor) => {
    const query = { user_id: "*", limit: 50, ...(problem ? { problem } : {}), ...(cursor ? { cursor } : {}) };
    return data(api.GET("/v1/payments", { params: { query } }));
  });
  const columns: Column<OrderOut>[] = [
    {
      key: "plan",
      header: t("plan"),
      width: "minmax(8rem, 1fr)",
      phone: "title",
      cell: (order) => names.get(order.plan_id) ?? order.description,
    },
    { key: "state", header: part("state"), width: "8rem", cell: (order) => <StateBadge state={order.status} /> },
    {
      key: "amount",
      header: t("amount"),
      width: "7rem",
      align: "end",
      cell: (order) => formats.money(order.amount_cents, order.currency, language),
    },
    { key: "user", header: t("user"), width: "8rem", cell: (order) => <Id id={order.user_id} />, phone: "hidden" },
    { key: "paid", header: t("paid"), width: "8.5rem", cell: (order) => <Time at={order.paid_at} /> },
    {
      key: "problem",
      header: t("problem"),
      width: "9rem",
      cell: (order) => order.problem && <StateBadge state={order.problem} label={order.problem} tone="bad" />,
    },
    {
      key: "actions",
      header: "",
      width: "11rem",
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
  const common = useText(commonTexts);
  const { busy, act } = useAct(["payments"]);
  const [reason, setReason] = useState("");
  const act_ = async () => {
    const options = { params: { path: { order_id: order.id } }, body: { reason } };
    const done = await act(() => data(api.POST(`/v1/admin/payments/{order_id}/${verb}`, options)), t("done"));
    if (done) onClose();
  };
  return (
    <Modal
      opened
      onClose={onClose}
      title={<Text fw={650}>{verb === "refund" ? t("askRefund") : t("askResolve")}</Text>}
      closeButtonProps={{ "aria-label": common("close") }}
    >
      <form
        onSubmit={(event) => {
          event.preventDefault();
          void act_();
        }}
      >
        <Stack>
          <Text size="sm">{verb === "refund" ? t("refundText") : t("resolveText")}</Text>
          <TextInput
            label={t("reason")}
            required
            data-autofocus
            value={reason}
            onChange={(event) => setReason(event.currentTarget.value)}
          />
          <Group justify="flex-end">
            <Button variant="default" onClick={onClose}>
              {common("cancel")}
            </Button>
            <Button type="submit" loading={busy} color={verb === "refund" ? "red.8" : undefined}>
              {t(verb)}
            </Button>
          </Group>
        </Stack>
      </form>
    </Modal>
  );
}
