import { Button, PasswordInput, Stack, TextInput } from "@mantine/core";
import { type FormEvent, useState } from "react";
import { api, data } from "../api";
import { ProblemAlert, tell } from "../components";
import { useText } from "../i18n";
import { sessionTexts } from "./session.texts";
import { signedIn } from "./store";

export function RegisterForm({ minLength }: { minLength: number }) {
  const t = useText(sessionTexts);
  const [username, setUsername] = useState("");
  const [password, setPassword] = useState("");
  const [email, setEmail] = useState("");
  const [error, setError] = useState<unknown>(null);
  const [busy, setBusy] = useState(false);
  const submit = async (event: FormEvent) => {
    event.preventDefault();
    setBusy(true);
    setError(null);
    try {
      const user = await data(api.POST("/v1/auth/register", { body: { username, password, email: email || null } }));
      signedIn(await data(api.POST("/v1/auth/login", { body: { username, password } })));
      tell(t("madeWelcome", { name: user.username ?? username }));
    } catch (refusal) {
      setError(refusal);
    } finally {
      setBusy(false);
    }
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
