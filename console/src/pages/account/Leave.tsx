import { Button, Group, PasswordInput, Stack, Text } from "@mantine/core";
import { useQueryClient } from "@tanstack/react-query";
import { type FormEvent, useState } from "react";
import { useNavigate } from "react-router";
import { api } from "../../api";
import { Panel, ProblemAlert, tell, useAct, useConfirm } from "../../components";
import { useText } from "../../i18n";
import { useCapabilities } from "../../session/capabilities";
import { signedOut } from "../../session/store";
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
          {error !== null && <ProblemAlert error={error} />}
          <PasswordInput
            label={t("password")}
            description={t("leaveConfirm")}
            autoComplete="current-password"
            value={password}
            onChange={(event) => setPassword(event.currentTarget.value)}
            required
            withAsterisk={false}
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
