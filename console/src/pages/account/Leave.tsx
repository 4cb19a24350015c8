import { Button, Group, Stack, Text } from "@mantine/core";
import { useQuery, useQueryClient } from "@tanstack/react-query";
import { type FormEvent, useState } from "react";
import { useNavigate } from "react-router";
import { api, data, keys } from "../../api";
import { Panel, ProblemAlert, tell, useAct, useConfirm } from "../../components";
import { useText } from "../../i18n";
import { useCapabilities } from "../../session/capabilities";
import { PasswordField } from "../../session/EntranceForm";
import { signedOut } from "../../session/store";
import { usePlans } from "../usage/Plans";
import { accountTexts } from "./account.texts";

const DAY_S = 86_400;

/** The end of an account, which can be undone for some days. */
export function Leave() {
  const t = useText(accountTexts);
  const confirm = useConfirm();
  const navigate = useNavigate();
  const queries = useQueryClient();
  const days = Math.round((useCapabilities().data?.accounts.deletion_grace_seconds ?? 7 * DAY_S) / DAY_S);
  const [password, setPassword] = useState("");
  const lost =
    useQuery({ queryKey: keys.usage.balance, queryFn: () => data(api.GET("/v1/usage/balance")) }).data?.left ?? 0;
  const plans = usePlans().data;
  const subscriptions = useQuery({
    queryKey: keys.usage.subscriptions,
    queryFn: async () => (await data(api.GET("/v1/subscriptions", { params: { query: { limit: 20 } } }))).items,
  }).data;
  const mine = subscriptions?.find((each) => each.status === "ACTIVE" || each.status === "PAST_DUE");
  const plan = plans?.find((each) => each.id === mine?.plan_id)?.name;
  const { error, attempt } = useAct();
  const submit = async (event: FormEvent) => {
    event.preventDefault();
    if (!(await confirm({ title: t("leave"), body: t("leaveText", { days }), action: t("leaveAction"), danger: true })))
      return;
    await attempt(async () => {
      await api.POST("/v1/me/deletion", { body: { password } });
      tell(t("gone"));
      queries.clear();
      signedOut();
      void navigate("/login");
    });
  };
  return (
    <Panel title={t("leave")}>
      <form onSubmit={(event) => void submit(event)}>
        <Stack maw={520}>
          <Text size="sm">{t("leaveText", { days })}</Text>
          {lost > 0 && (
            <Text size="sm" fw={600}>
              {plan ? t("leavePlan", { plan, n: lost }) : t("leaveUnits", { n: lost })}
            </Text>
          )}
          {error !== null && <ProblemAlert error={error} />}
          <PasswordField
            label={t("password")}
            description={t("leaveConfirm")}
            value={password}
            onChange={setPassword}
          />
          <Group>
            <Button type="submit" color="red.8" disabled={password === ""}>
              {t("leaveAction")}
            </Button>
          </Group>
        </Stack>
      </form>
    </Panel>
  );
}
