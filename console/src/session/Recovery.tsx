import { Alert, Anchor, Button, Code, Stack, Text } from "@mantine/core";
import { useEffect, useRef, useState } from "react";
import { Link, useNavigate } from "react-router";
import { api } from "../api";
import { IconCheck, ProblemAlert, tell, useAct } from "../components";
import { language, useText } from "../i18n";
import { useCapabilities } from "./capabilities";
import { Entrance } from "./Entrance";
import { EntranceForm, PasswordField, UsernameField } from "./EntranceForm";
import { recoveryTexts } from "./recovery.texts";
import { sessionTexts } from "./session.texts";

/** The token of a link in an e-mail: in the fragment of the address, which no server sees. Gone from it once read. */
function takeToken(): string {
  const token = new URLSearchParams(location.hash.slice(1)).get("token") ?? "";
  if (token) history.replaceState(history.state, "", location.pathname);
  return token;
}

/** Asks for a link to choose another password. */
export function ForgotPage() {
  const t = useText(recoveryTexts);
  const offer = useCapabilities().data?.accounts;
  return (
    <Entrance title={t("forgotTitle")} text={offer?.mail === false ? "" : t("forgotText")}>
      {offer?.mail === false ? <MailOff /> : <ForgotForm />}
      <Text size="sm" mt="lg">
        <Anchor component={Link} to="/login">
          {t("backToSignIn")}
        </Anchor>
      </Text>
    </Entrance>
  );
}

function MailOff() {
  const t = useText(recoveryTexts);
  return (
    <Stack gap="xs">
      <Text size="sm">{t("mailOff")}</Text>
      <Code block>headrace admin reset-password USERNAME</Code>
    </Stack>
  );
}

function ForgotForm() {
  const t = useText(recoveryTexts);
  const [login, setLogin] = useState("");
  const [sent, setSent] = useState(false);
  const { busy, error, attempt } = useAct();
  const submit = async () => {
    const body = { login, language: language() };
    if (await attempt(() => api.POST("/v1/auth/password/forgot", { body }))) setSent(true);
  };
  if (sent)
    return (
      <Alert icon={<IconCheck />} title={t("sent")} role="status">
        {t("sentText")}
      </Alert>
    );
  return (
    <EntranceForm problem={error} busy={busy} action={t("sendLink")} onSubmit={submit}>
      <UsernameField label={t("login")} value={login} onChange={setLogin} data-autofocus />
    </EntranceForm>
  );
}

/** Where the link of a forgotten password leads. */
export function ResetPage() {
  const t = useText(recoveryTexts);
  const navigate = useNavigate();
  const words = useText(sessionTexts);
  const [token] = useState(takeToken);
  const [password, setPassword] = useState("");
  const minLength = useCapabilities().data?.accounts.password_min_length;
  const { busy, error, attempt } = useAct();
  const submit = async () => {
    const body = { token, new_password: password };
    if (!(await attempt(() => api.POST("/v1/auth/password/reset", { body })))) return;
    tell(t("resetDone"));
    void navigate("/login");
  };
  return (
    <Entrance title={t("resetTitle")} text={t("resetText")}>
      <EntranceForm
        problem={error}
        busy={busy}
        action={t("reset")}
        disabled={token === ""}
        onSubmit={submit}
        after={
          <Text size="sm">
            <Anchor component={Link} to="/forgot-password">
              {t("askAgain")}
            </Anchor>
          </Text>
        }
      >
        {token === "" && <Alert role="alert">{t("noToken")}</Alert>}
        <PasswordField
          fresh
          label={t("fresh")}
          description={minLength && words("passwordHint", { n: minLength })}
          value={password}
          onChange={setPassword}
          minLength={minLength}
          disabled={token === ""}
        />
      </EntranceForm>
    </Entrance>
  );
}

/** Where the link to a new e-mail address leads, signed in or not. */
export function ConfirmEmailPage() {
  const t = useText(recoveryTexts);
  const [token] = useState(takeToken);
  const [done, setDone] = useState(false);
  const { error, attempt } = useAct();
  const begun = useRef(false);
  useEffect(() => {
    if (token === "" || begun.current) return;
    begun.current = true; // the link works once
    const body = { token, language: language() };
    void attempt(() => api.POST("/v1/auth/email/confirm", { body })).then(setDone);
  }, [token, attempt]);
  return (
    <Entrance title={t("confirmTitle")} text="">
      <Stack gap="sm">
        {token === "" && <Alert role="alert">{t("noToken")}</Alert>}
        {error !== null && <ProblemAlert error={error} />}
        {done && <Alert icon={<IconCheck />} title={t("confirmed")} role="status" />}
        {token !== "" && !done && error === null && <Text role="status">{t("confirming")}</Text>}
        <Button component={Link} to="/account" variant={done ? "filled" : "default"}>
          {t("goOn")}
        </Button>
      </Stack>
    </Entrance>
  );
}
