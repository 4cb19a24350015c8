import { Button, PasswordInput, Stack, TextInput } from "@mantine/core";
import { type FormEvent, useState } from "react";
import { api, data } from "../api";
import { ProblemAlert, useAct } from "../components";
import { useText } from "../i18n";
import { sessionTexts } from "./session.texts";
import { signedIn } from "./store";

export function RegisterForm({ minLength }: { minLength: number }) {
  const t = useText(sessionTexts);
  const [username, setUsername] = useState("");
  const [password, setPassword] = useState("");
  const [email, setEmail] = useState("");
  const { busy, error, attempt } = useAct();
  const register = async () => {
    const user = await data(api.POST("/v1/auth/register", { body: { username, password, email: email || null } }));
    signedIn(await data(api.POST("/v1/auth/login", { body: { username, password } })));
    return user.username ?? username;
  };
  const submit = (event: FormEvent) => {
    event.preventDefault();
    return attempt(register, (name) => t("madeWelcome", { name }));
  };
  return (
    <form onSubmit={(event) => void submit(event)}>
      <Stack gap="sm">
        {error !== null && <ProblemAlert error={error} />}
        <TextInput
          label={t("username")}
          description={t("usernameHint")}
          name="username"
          autoComplete="username"
          value={username}
          onChange={(event) => setUsername(event.currentTarget.value)}
          maxLength={64}
          required
          withAsterisk={false}
        />
        <PasswordInput
          label={t("password")}
          description={t("passwordHint", { n: minLength })}
          name="password"
          autoComplete="new-password"
          value={password}
          onChange={(event) => setPassword(event.currentTarget.value)}
          minLength={minLength}
          required
          withAsterisk={false}
        />
        <TextInput
          label={`${t("email")} (${t("optional")})`}
          name="email"
          type="email"
          autoComplete="email"
          value={email}
          onChange={(event) => setEmail(event.currentTarget.value)}
        />
        <Button type="submit" loading={busy} mt="xs">
          {t("register")}
        </Button>
      </Stack>
    </form>
  );
}
