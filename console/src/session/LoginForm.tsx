import { Button, TextInput } from "@mantine/core";
import { useEffect, useState } from "react";
import { ApiError, api, data } from "../api";
import { useAct } from "../components";
import { useText } from "../i18n";
import { EntranceForm, PasswordField, UsernameField } from "./EntranceForm";
import { recoveryTexts } from "./recovery.texts";
import { sessionTexts } from "./session.texts";
import { signedIn } from "./store";

const focusOnce = (field: HTMLInputElement | null) => field?.focus();

/** Name and password. `username` is given when the same person has to prove themselves again. */
export function LoginForm({ username }: { username?: string | null }) {
  const t = useText(sessionTexts);
  const recovery = useText(recoveryTexts);
  const [name, setName] = useState(username ?? "");
  const [password, setPassword] = useState("");
  const [code, setCode] = useState("");
  const { busy, error, attempt } = useAct();
  // Once asked for, the field stays: a wrong code is corrected there.
  const [needsCode, setNeedsCode] = useState(false);
  const asksForCode = error instanceof ApiError && error.code === "second_factor_needed";
  useEffect(() => {
    if (asksForCode) setNeedsCode(true);
  }, [asksForCode]);
  const isBeingDeleted = error instanceof ApiError && error.code === "account_being_deleted";
  const enter = (keep = false) => {
    const body = { username: name, password, keep_account: keep, ...(needsCode && code ? { code } : {}) };
    return attempt(async () => signedIn(await data(api.POST("/v1/auth/login", { body }))));
  };
  const isFixed = username !== undefined && username !== null;
  return (
    <EntranceForm
      problem={asksForCode ? null : error}
      problemTitle={isBeingDeleted ? t("deletedTitle") : undefined}
      busy={busy}
      action={t("signIn")}
      onSubmit={() => enter()}
      after={
        isBeingDeleted && (
          <Button variant="default" loading={busy} onClick={() => void enter(true)}>
            {t("keep")}
          </Button>
        )
      }
    >
      <UsernameField
        label={t("username")}
        value={name}
        onChange={setName}
        readOnly={isFixed}
        data-autofocus={isFixed ? undefined : true}
      />
      <PasswordField
        label={t("password")}
        value={password}
        onChange={setPassword}
        data-autofocus={isFixed ? true : undefined}
      />
      {needsCode && (
        <TextInput
          label={recovery("code")}
          description={recovery("codeHint")}
          name="code"
          autoComplete="one-time-code"
          value={code}
          onChange={(event) => setCode(event.currentTarget.value)}
          required
          withAsterisk={false}
          ref={focusOnce}
        />
      )}
    </EntranceForm>
  );
}
