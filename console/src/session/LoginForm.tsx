import { Button, PasswordInput, Stack, TextInput } from "@mantine/core";
import { type FormEvent, useEffect, useState } from "react";
import { ApiError, api, data } from "../api";
import { ProblemAlert, useAct } from "../components";
import { useText } from "../i18n";
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
  const submit = (event: FormEvent, keep = false) => {
    event.preventDefault();
    const body = { username: name, password, keep_account: keep, ...(needsCode && code ? { code } : {}) };
    return attempt(async () => signedIn(await data(api.POST("/v1/auth/login", { body }))));
  };
  return (
    <form onSubmit={(event) => void submit(event)}>
      <Stack gap="sm">
        {error !== null && !asksForCode && (
          <ProblemAlert error={error} title={isBeingDeleted ? t("deletedTitle") : undefined} />
        )}
        <TextInput
          label={t("username")}
          name="username"
          autoComplete="username"
          value={name}
          onChange={(event) => setName(event.currentTarget.value)}
          readOnly={username !== undefined && username !== null}
          required
          withAsterisk={false}
          data-autofocus={username ? undefined : true}
        />
        <PasswordInput
          label={t("password")}
          name="password"
          autoComplete="current-password"
          value={password}
          onChange={(event) => setPassword(event.currentTarget.value)}
          required
          withAsterisk={false}
          data-autofocus={username ? true : undefined}
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
        <Button type="submit" loading={busy} mt="xs">
          {t("signIn")}
        </Button>
        {isBeingDeleted && (
          <Button variant="default" loading={busy} onClick={(event) => void submit(event, true)}>
            {t("keep")}
          </Button>
        )}
      </Stack>
    </form>
  );
}
