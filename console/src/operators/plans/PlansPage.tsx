import { Button, Stack, Switch, Tabs } from "@mantine/core";
import { useState } from "react";
import { api, data, keys, type PlanOut, useListing } from "../../api";
import {
  type Column,
  CursorTable,
  Empty,
  IconCreditCard,
  IconPlus,
  Page,
  StateBadge,
  Time,
  useFilters,
} from "../../components";
import { formats, useLanguage, useText } from "../../i18n";
import { Orders } from "./Orders";
import { PlanForm } from "./PlanForm";
import { planTexts } from "./plans.texts";
import { Subscriptions } from "./Subscriptions";

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

function Plans({ onEdit }: { onEdit: (plan: PlanOut) => void }) {
  const t = useText(planTexts);
  const language = useLanguage();
  const listing = useListing<PlanOut>(keys.plans.list, (cursor) =>
    data(api.GET("/v1/admin/plans", { params: { query: { limit: 50, cursor } } })),
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
