import { Anchor, Group, Text, TextInput } from "@mantine/core";
import { useState } from "react";
import { api, data, keys } from "../../api";
import { FormDialog, tell } from "../../components";
import { language, useText } from "../../i18n";
import { PasswordField } from "../../session/EntranceForm";
import { accountTexts } from "./account.texts";

/** The e-mail address, and a way to change it: a new one counts after it was confirmed. */
export function Email({ email }: { email: string | null }) {
  const t = useText(accountTexts);
  const [open, setOpen] = useState(false);
  return (
    <Group gap="xs">
      <span>{email ?? "–"}</span>
      <Anchor component="button" type="button" onClick={() => setOpen(true)}>
        {t("emailChange")}
      </Anchor>
      {open && <ChangeEmail email={email} onClose={() => setOpen(false)} />}
    </Group>
  );
}

function ChangeEmail({ email, onClose }: { email: string | null; onClose: () => void }) {
  const t = useText(accountTexts);
  const [fresh, setFresh] = useState("");
  const [password, setPassword] = useState("");
  const save = async () => {
    const body = { email: fresh.trim() || null, password, language: language() };
    const changed = await data(api.POST("/v1/me/email", { body }));
    tell(changed.sent_to ? t("emailSent", { email: changed.sent_to }) : t("emailChanged"));
    onClose();
  };
  return (
    <FormDialog
      title={t("emailChange")}
      onClose={onClose}
      onSave={save}
      changes={keys.me}
      action={t("emailChange")}
      disabled={password === "" || fresh.trim() === (email ?? "")}
    >
      <TextInput
        label={t("emailNew")}
        description={email ? t("emailNewHint") : undefined}
        type="email"
        autoComplete="email"
        value={fresh}
        onChange={(event) => setFresh(event.currentTarget.value)}
        data-autofocus
      />
      <PasswordField label={t("password")} value={password} onChange={setPassword} />
      <Text size="xs" c="dimmed">
        {t("leaveConfirm")}
      </Text>
    </FormDialog>
  );
}
