import { TextInput } from "@mantine/core";
import { useState } from "react";
import { api, data } from "../api";
import { useAct } from "../components";
import { useText } from "../i18n";
import { EntranceForm, PasswordField, UsernameField } from "./EntranceForm";
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
  return (
    <EntranceForm
      problem={error}
      busy={busy}
      action={t("register")}
      onSubmit={() => attempt(register, (name) => t("madeWelcome", { name }))}
    >
      <UsernameField
        label={t("username")}
        description={t("usernameHint")}
        value={username}
        onChange={setUsername}
        maxLength={64}
      />
      <PasswordField
        fresh
        label={t("password")}
        description={t("passwordHint", { n: minLength })}
        value={password}
        onChange={setPassword}
        minLength={minLength}
      />
      <TextInput
        label={`${t("email")} (${t("optional")})`}
        description={t("emailHint")}
        name="email"
        type="email"
        autoComplete="email"
        value={email}
        onChange={(event) => setEmail(event.currentTarget.value)}
      />
    </EntranceForm>
  );
}
