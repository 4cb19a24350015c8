import { Button, Group, SimpleGrid, Stack, Text } from "@mantine/core";
import { useQuery, useQueryClient } from "@tanstack/react-query";
import { useState } from "react";
import { api, data, ifMatch, keys, type OrderOut, type PlanOut, type SubscriptionOut } from "../../api";
import { Empty, IconCrown, Loading, ProblemAlert, StateBadge, Time, useAct, useConfirm } from "../../components";
import { formats, useLanguage, useText } from "../../i18n";
import { PayDialog } from "./PayDialog";
import classes from "./Plans.module.css";
import { usageTexts } from "./usage.texts";

export function usePlans() {
  return useQuery({
    queryKey: keys.plans.offered,
    queryFn: async () => (await data(api.GET("/v1/plans"))).items,
    staleTime: 60_000,
  });
}

/** Plans for sale, and the user's subscription. */
export function Plans() {
  const t = useText(usageTexts);
  const queries = useQueryClient();
  const [order, setOrder] = useState<OrderOut | null>(null);
  const [wanted, setWanted] = useState<string | null>(null);
  const { busy, act } = useAct();
  const confirm = useConfirm();
  const plans = usePlans();
  const subscriptions = useQuery({
    queryKey: keys.usage.subscriptions,
    queryFn: async () => (await data(api.GET("/v1/subscriptions", { params: { query: { limit: 20 } } }))).items,
  });
  if (plans.error) return <ProblemAlert error={plans.error} onRetry={() => void plans.refetch()} />;
  if (!plans.data || !subscriptions.data) return <Loading />;
  if (plans.data.length === 0) return <Empty icon={IconCrown} title={t("noPayments")} />;
  const mine = subscriptions.data.find((each) => each.status === "ACTIVE" || each.status === "PAST_DUE");
  const present = plans.data.find((plan) => plan.id === mine?.plan_id);
  const buy = async (plan: PlanOut) => {
    const name = present?.name ?? "";
    const question = { title: t("switchTitle", { plan: plan.name }), body: t("switchText", { plan: name }) };
    if (present && present.id !== plan.id && !(await confirm({ ...question, action: t("choose") }))) return;
    setWanted(plan.id);
    return act(async () => {
      const made =
        mine?.plan_id === plan.id
          ? await data(
              api.POST("/v1/subscriptions/{subscription_id}/renew", {
                params: { path: { subscription_id: mine.id } },
                body: { method: "NATIVE" },
              }),
            )
          : await data(api.POST("/v1/subscriptions", { body: { plan: plan.id, method: "NATIVE" } }));
      setOrder("order" in made ? made.order : made);
    });
  };
  return (
    <>
      <Text size="sm" c="dimmed" mb="md" maw="48rem">
        {t("unitIs")}
      </Text>
      <SimpleGrid cols={{ base: 1, xs: 2, md: 3 }} spacing="md">
        {plans.data.map((plan) => (
          <Plan
            key={plan.id}
            plan={plan}
            mine={mine?.plan_id === plan.id ? mine : null}
            busy={busy && wanted === plan.id}
            onBuy={() => void buy(plan)}
          />
        ))}
      </SimpleGrid>
      {plans.data.every((plan) => plan.price_cents === 0) && (
        <Text size="sm" c="dimmed" mt="md">
          {t("noPayments")}
        </Text>
      )}
      {order && (
        <PayDialog
          order={order}
          onClose={() => {
            setOrder(null);
            void queries.invalidateQueries({ queryKey: keys.usage.all });
          }}
        />
      )}
    </>
  );
}

function Plan({
  plan,
  mine,
  busy,
  onBuy,
}: {
  plan: PlanOut;
  mine: SubscriptionOut | null;
  busy: boolean;
  onBuy: () => void;
}) {
  const t = useText(usageTexts);
  const language = useLanguage();
  const labels = plan.features.flatMap((feature) => (feature.feature === "label" ? [String(feature.text)] : []));
  return (
    <div className={classes.plan} data-mine={mine !== null || undefined}>
      <Group justify="space-between">
        <Text fw={600} fz="lg">
          {plan.name}
        </Text>
        {mine && <StateBadge state={mine.status} label={t("current")} />}
        {plan.price_cents === 0 && <StateBadge state="ACTIVE" label={t("everybody")} tone="neutral" />}
      </Group>
      <Text fz="xl" fw={600} className="figures">
        {plan.price_cents === 0 ? t("free") : formats.money(plan.price_cents, plan.currency, language)}{" "}
        {plan.price_cents > 0 && (
          <Text span size="sm" c="dimmed" fw={400}>
            {t("perMonth")}
          </Text>
        )}
      </Text>
      <Text size="sm">
        {t("unitsMonth", { n: plan.monthly_quota })}
        {plan.price_cents > 0 && plan.monthly_quota > 0 && (
          <Text span size="sm" c="dimmed">
            {" · "}
            {t("perUnit", {
              price: formats.money(Math.round(plan.price_cents / plan.monthly_quota), plan.currency, language),
            })}
          </Text>
        )}
      </Text>
      <Stack gap={2}>
        {labels.map((label) => (
          <Text key={label} size="sm" c="dimmed">
            {label}
          </Text>
        ))}
      </Stack>
      {mine && <Mine subscription={mine} />}
      {plan.price_cents > 0 && (
        <Button mt="auto" variant={mine ? "default" : "filled"} loading={busy} onClick={onBuy}>
          {mine ? t("renew") : t("choose")}
        </Button>
      )}
    </div>
  );
}

function Mine({ subscription }: { subscription: SubscriptionOut }) {
  const t = useText(usageTexts);
  const confirm = useConfirm();
  const { act } = useAct(keys.usage.all);
  const params = { path: { subscription_id: subscription.id }, header: ifMatch(subscription.version) };
  const toggle = async () => {
    const canceled = subscription.canceled_at !== null;
    if (
      !canceled &&
      !(await confirm({ title: t("cancelPlan"), body: t("cancelPlanText"), action: t("cancelPlan"), danger: true }))
    ) {
      return;
    }
    await act(() =>
      canceled
        ? api.POST("/v1/subscriptions/{subscription_id}/resume", { params })
        : api.POST("/v1/subscriptions/{subscription_id}/cancel", { params }),
    );
  };
  return (
    <Group gap="xs">
      {subscription.expire_at && (
        <Text size="sm" c="dimmed">
          {t("until")} <Time at={subscription.expire_at} exact />
        </Text>
      )}
      <Button size="compact-sm" variant="subtle" onClick={() => void toggle()}>
        {subscription.canceled_at ? t("resumePlan") : t("cancelPlan")}
      </Button>
    </Group>
  );
}
