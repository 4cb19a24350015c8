import { Button, PasswordInput, Stack, TextInput } from "@mantine/core";
import { type FormEvent, useState } from "react";
import { ApiError, api, data } from "../api";
import { ProblemAlert, useAct } from "../components";
import { useText } from "../i18n";
import { sessionTexts } from "./session.texts";
import { signedIn } from "./store";

/** Name and password. `username` is given when the same person has to prove themselves again. */
export function LoginForm({ username }: { username?: string | null }) {
  const t = useText(sessionTexts);
  const [name, setName] = useState(username ?? "");
  const [password, setPassword] = useState("");
  const { busy, error, attempt } = useAct();
  const isBeingDeleted = error instanceof ApiError && error.code === "account_being_deleted";
  const submit = (event: FormEvent, keep = false) => {
    event.preventDefault();
    const body = { username: name, password, keep_account: keep };
    return attempt(async () => signedIn(await data(api.POST("/v1/auth/login", { body }))));
  };
  return (
    <form onSubmit={(event) => void submit(event)}>
      <Stack gap="sm">
        {error !== null && <ProblemAlert error={error} title={isBeingDeleted ? t("deletedTitle") : undefined} />}
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
