import { Group, JsonInput, NumberInput, Switch, TextInput } from "@mantine/core";
import { useState } from "react";
import { api, data, ifMatch, keys, type PlanOut } from "../../api";
import { FormDialog, tell } from "../../components";
import { useText } from "../../i18n";
import { partTexts } from "../parts/parts.texts";
import { planTexts } from "./plans.texts";

/** Make a plan, or change one. */
export function PlanForm({ plan, onClose }: { plan: PlanOut | null; onClose: () => void }) {
  const t = useText(planTexts);
  const part = useText(partTexts);
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
    if (plan === null) await data(api.POST("/v1/admin/plans", { body }));
    else {
      const params = { path: { plan_id: plan.id } };
      await data(api.PATCH("/v1/admin/plans/{plan_id}", { params, headers: ifMatch(plan.version), body }));
    }
    tell(t("saved"));
    onClose();
  };
  return (
    <FormDialog
      title={plan?.name ?? t("create")}
      onSave={save}
      changes={keys.plans.all}
      disabled={parsed === null}
      onClose={onClose}
    >
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
    </FormDialog>
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
