import { Anchor, Button, Group, NumberInput, SimpleGrid, Stack, Text, TextInput } from "@mantine/core";
import { useQuery } from "@tanstack/react-query";
import { type ReactNode, useState } from "react";
import { Link, useParams } from "react-router";
import { type ApiKeyOut, api, data, type EntitlementOut, keys, randomKey, type UserOut } from "../../api";
import {
  commonTexts,
  Fact,
  Facts,
  FormDialog,
  IconBan,
  IconCrown,
  IconKey,
  IconPlayerPlay,
  Id,
  Loaded,
  Page,
  Panel,
  Secret,
  StateBadge,
  shortId,
  Time,
  TimeFact,
  useAct,
  useConfirm,
} from "../../components";
import { formats, useLanguage, useText } from "../../i18n";
import { browserOf } from "../../pages/account/browser";
import { AuditList, auditOf } from "../parts/AuditList";
import { AUDITED_EVERY_MS } from "../parts/audited";
import { usePlanNames } from "../plans/usePlanNames";
import { userTexts } from "./users.texts";

const SHOWN = 10;

/** One user: who they are, what they have left, and what an administrator may do. */
export default function UserPage() {
  const { userId = "" } = useParams();
  const query = useQuery({
    queryKey: keys.users.one(userId),
    queryFn: () => data(api.GET("/v1/admin/users/{user_id}", { params: { path: { user_id: userId } } })),
  });
  return <Loaded query={query}>{(user) => <User user={user} />}</Loaded>;
}

function User({ user }: { user: UserOut }) {
  const t = useText(userTexts);
  const [password, setPassword] = useState<string | null>(null);
  const { id: userId } = user;
  const name = user.username ?? user.id;
  return (
    <Page
      title={name}
      text={<Id id={user.id} full />}
      actions={user.status !== "DELETED" && <Actions user={user} onPassword={setPassword} />}
    >
      {password && <Secret value={password} title={t("theirPassword", { name })} />}
      <SimpleGrid cols={{ base: 1, md: 2 }}>
        <Panel>
          <Facts>
            <Fact name={t("role")}>{t(user.role)}</Fact>
            <Fact name={t("email")}>{user.email ?? "–"}</Fact>
            <TimeFact name={t("lastLogin")} at={user.last_login_at} />
            <TimeFact name={t("since")} at={user.created_at} />
            <TimeFact name={t("factor")} at={user.second_factor_at ?? null} />
            <Fact name={t("state")}>
              <StateBadge state={user.status} />
            </Fact>
          </Facts>
        </Panel>
        <Balance userId={userId} />
      </SimpleGrid>
      <Purchases userId={userId} />
      <Access userId={userId} />
      <Panel
        title={t("activity")}
        actions={
          <>
            <Anchor component={Link} to={`/operators/tasks?owner=${userId}`} size="sm">
              {t("theirTasks")}
            </Anchor>
            <Anchor component={Link} to={`/operators/schedules?owner=${userId}`} size="sm">
              {t("theirSchedules")}
            </Anchor>
            <Anchor component={Link} to={`/operators/ledger?user=${userId}`} size="sm">
              {t("theirLedger")}
            </Anchor>
            <Anchor component={Link} to={auditOf({ user_id: userId })} size="sm">
              {t("theirAudit")}
            </Anchor>
          </>
        }
      >
        <AuditList filter={{ user_id: userId }} />
      </Panel>
    </Page>
  );
}

/** What the user has bought: plans, orders, and the units of each period. */
function Purchases({ userId }: { userId: string }) {
  const t = useText(userTexts);
  const language = useLanguage();
  const plans = usePlanNames();
  const [adjusted, setAdjusted] = useState<EntitlementOut | null>(null);
  const query = { user_id: userId, limit: SHOWN };
  const entitlements = useQuery({
    queryKey: keys.users.entitlements(userId),
    queryFn: async () => (await data(api.GET("/v1/entitlements", { params: { query } }))).items,
  }).data;
  const subscriptions = useQuery({
    queryKey: keys.users.subscriptions(userId),
    queryFn: async () => (await data(api.GET("/v1/subscriptions", { params: { query } }))).items,
  }).data;
  const orders = useQuery({
    queryKey: keys.users.orders(userId),
    queryFn: async () => (await data(api.GET("/v1/payments", { params: { query } }))).items,
  }).data;
  const nameOf = (id: string) => plans.get(id) ?? shortId(id);
  return (
    <>
      <SimpleGrid cols={{ base: 1, md: 2 }}>
        <Panel title={t("subscriptions")}>
          <Lines
            rows={subscriptions?.map((each) => ({
              key: each.id,
              name: nameOf(each.plan_id),
              state: each.status,
              at: each.expire_at ?? each.created_at,
            }))}
          />
        </Panel>
        <Panel title={t("orders")}>
          <Lines
            rows={orders?.map((each) => ({
              key: each.id,
              name: `${nameOf(each.plan_id)} · ${formats.money(each.amount_cents, each.currency, language)}`,
              state: each.status,
              at: each.created_at,
            }))}
          />
        </Panel>
      </SimpleGrid>
      <Panel title={t("periods")}>
        <Lines
          rows={entitlements?.map((each) => ({
            key: each.id,
            name: `${nameOf(each.plan_id)} · ${each.quota_left} / ${each.quota_total}`,
            state: each.status,
            at: each.period_end,
            action: each.status === "ACTIVE" && (
              <Button size="compact-sm" variant="default" onClick={() => setAdjusted(each)}>
                {t("adjust")}
              </Button>
            ),
          }))}
        />
      </Panel>
      {adjusted && <Adjust entitlement={adjusted} onClose={() => setAdjusted(null)} />}
    </>
  );
}

/** Where the user is signed in, and with which keys their programs are. Each look is audited. */
function Access({ userId }: { userId: string }) {
  const t = useText(userTexts);
  const confirm = useConfirm();
  const { busy, act } = useAct(keys.users.all);
  const params = { path: { user_id: userId }, query: { limit: SHOWN } };
  const sessions = useQuery({
    queryKey: keys.users.sessions(userId),
    queryFn: async () => (await data(api.GET("/v1/admin/users/{user_id}/sessions", { params }))).items,
    staleTime: AUDITED_EVERY_MS,
  }).data;
  const apiKeys = useQuery({
    queryKey: keys.users.apiKeys(userId),
    queryFn: async () => (await data(api.GET("/v1/admin/users/{user_id}/api-keys", { params }))).items,
    staleTime: AUDITED_EVERY_MS,
  }).data;
  const end = async (session_id: string) => {
    const path = { user_id: userId, session_id };
    if (await confirm({ title: t("askEnd"), body: t("endText"), action: t("endSession"), danger: true }))
      await act(() => api.DELETE("/v1/admin/users/{user_id}/sessions/{session_id}", { params: { path } }), t("ended"));
  };
  const revoke = async ({ id, name }: ApiKeyOut) => {
    const path = { user_id: userId, api_key_id: id };
    const title = t("askRevoke", { name });
    if (await confirm({ title, body: t("revokeText"), action: t("revokeKey"), danger: true }))
      await act(
        () => api.DELETE("/v1/admin/users/{user_id}/api-keys/{api_key_id}", { params: { path } }),
        t("revoked"),
      );
  };
  return (
    <SimpleGrid cols={{ base: 1, md: 2 }}>
      <Panel title={t("sessions")}>
        <Lines
          rows={sessions?.map((each) => ({
            key: each.id,
            name: [browserOf(each.user_agent), each.client_ip].filter(Boolean).join(" · "),
            at: each.last_seen_at,
            action: !each.current && (
              <Button size="compact-sm" variant="default" loading={busy} onClick={() => void end(each.id)}>
                {t("endSession")}
              </Button>
            ),
          }))}
        />
      </Panel>
      <Panel title={t("apiKeys")}>
        <Lines
          rows={apiKeys?.map((each) => ({
            key: each.id,
            name: `${each.name} (…${each.hint}) · ${each.scopes.join(", ")}`,
            at: each.last_used_at ?? each.created_at,
            action: (
              <Button size="compact-sm" variant="default" loading={busy} onClick={() => void revoke(each)}>
                {t("revokeKey")}
              </Button>
            ),
          }))}
        />
      </Panel>
    </SimpleGrid>
  );
}

interface Row {
  readonly key: string;
  readonly name: string;
  readonly state?: string;
  readonly at: string;
  readonly action?: ReactNode;
}

function Lines({ rows }: { rows: readonly Row[] | undefined }) {
  const common = useText(commonTexts);
  if (!rows?.length) {
    return (
      <Text size="sm" c="dimmed">
        {rows ? common("none") : "…"}
      </Text>
    );
  }
  return (
    <Stack gap={6}>
      {rows.map((row) => (
        <Group key={row.key} gap="sm" wrap="nowrap">
          <Text size="sm" flex={1} miw={0} truncate title={row.name}>
            {row.name}
          </Text>
          {row.state && <StateBadge state={row.state} />}
          <Text size="sm" c="dimmed" component="div">
            <Time at={row.at} />
          </Text>
          {row.action}
        </Group>
      ))}
    </Stack>
  );
}

/** Adds units to a period or takes them away; the reason is part of the ledger. */
function Adjust({ entitlement, onClose }: { entitlement: EntitlementOut; onClose: () => void }) {
  const t = useText(userTexts);
  const [units, setUnits] = useState<number | string>("");
  const [reason, setReason] = useState("");
  const [once] = useState(randomKey);
  const save = async () => {
    await api.POST("/v1/admin/entitlements/{entitlement_id}/adjust", {
      params: { path: { entitlement_id: entitlement.id } },
      headers: { "Idempotency-Key": once },
      body: { units: Number(units), reason },
    });
    onClose();
  };
  return (
    <FormDialog
      title={t("adjust")}
      onClose={onClose}
      onSave={save}
      changes={keys.users.all}
      disabled={!Number(units) || reason.trim() === ""}
    >
      <NumberInput label={t("units")} description={t("unitsHint")} value={units} onChange={setUnits} data-autofocus />
      <TextInput
        label={t("reason")}
        value={reason}
        onChange={(event) => setReason(event.currentTarget.value)}
        maxLength={255}
        required
        withAsterisk={false}
      />
    </FormDialog>
  );
}

function Balance({ userId }: { userId: string }) {
  const t = useText(userTexts);
  const language = useLanguage();
  const query = useQuery({
    queryKey: keys.users.balance(userId),
    queryFn: () => data(api.GET("/v1/usage/balance", { params: { query: { user_id: userId } } })),
  });
  const found = query.data;
  const n = (value: number) => formats.number(value, language);
  return (
    <Panel title={t("balance")}>
      {found && found.total > 0 ? (
        <Facts>
          <Fact name={t("left")}>{n(found.left)}</Fact>
          <Fact name={t("held")}>{n(found.held)}</Fact>
          <Fact name={t("total")}>{n(found.total)}</Fact>
          {found.renews_at && (
            <Fact name={t("renews")}>
              <Time at={found.renews_at} />
            </Fact>
          )}
        </Facts>
      ) : (
        <Text size="sm" c="dimmed">
          {found ? t("noPlan") : "…"}
        </Text>
      )}
    </Panel>
  );
}

function Actions({ user, onPassword }: { user: UserOut; onPassword: (password: string) => void }) {
  const t = useText(userTexts);
  const confirm = useConfirm();
  const { busy, act } = useAct(keys.users.all);
  const params = { path: { user_id: user.id } };
  const name = user.username ?? user.id;
  const suspend = async () => {
    const yes = await confirm({
      title: t("askSuspend", { name }),
      body: t("suspendText"),
      action: t("suspend"),
      danger: true,
    });
    if (yes) await act(() => data(api.POST("/v1/admin/users/{user_id}/suspend", { params })), t("suspended", { name }));
  };
  const role = async () => {
    const wanted = user.role === "ADMIN" ? "USER" : "ADMIN";
    const yes = await confirm({
      title: wanted === "ADMIN" ? t("askAdmin", { name }) : t("askUser", { name }),
      body: t("adminText"),
      action: wanted === "ADMIN" ? t("makeAdmin") : t("makeUser"),
      danger: true,
    });
    const body = { role: wanted } as const;
    if (yes) await act(() => data(api.POST("/v1/admin/users/{user_id}/role", { params, body })), t("roleChanged"));
  };
  const factorOff = async () => {
    const yes = await confirm({
      title: t("askFactorOff", { name }),
      body: t("factorOffText"),
      action: t("factorOff"),
      danger: true,
    });
    if (yes) await act(() => api.DELETE("/v1/admin/users/{user_id}/second-factor", { params }), t("factorIsOff"));
  };
  const reset = async () => {
    const yes = await confirm({
      title: t("askReset", { name }),
      body: t("resetText"),
      action: t("resetPassword"),
      danger: true,
    });
    if (!yes) return;
    await act(async () => {
      const found = await data(api.POST("/v1/admin/users/{user_id}/password", { params, body: {} }));
      if (found.password) onPassword(found.password);
    });
  };
  return (
    <>
      <Button variant="default" leftSection={<IconKey size={16} />} loading={busy} onClick={() => void reset()}>
        {t("resetPassword")}
      </Button>
      <Button variant="default" leftSection={<IconCrown size={16} />} loading={busy} onClick={() => void role()}>
        {user.role === "ADMIN" ? t("makeUser") : t("makeAdmin")}
      </Button>
      {user.second_factor_at && (
        <Button variant="default" leftSection={<IconKey size={16} />} loading={busy} onClick={() => void factorOff()}>
          {t("factorOff")}
        </Button>
      )}
      {user.status === "SUSPENDED" ? (
        <Button
          leftSection={<IconPlayerPlay size={16} />}
          loading={busy}
          onClick={() =>
            void act(() => data(api.POST("/v1/admin/users/{user_id}/reinstate", { params })), t("reinstated", { name }))
          }
        >
          {t("reinstate")}
        </Button>
      ) : (
        <Button variant="default" leftSection={<IconBan size={16} />} loading={busy} onClick={() => void suspend()}>
          {t("suspend")}
        </Button>
      )}
    </>
  );
}
