import { Button, Group, MultiSelect, Text, TextInput } from "@mantine/core";
import { useState } from "react";
import { type ApiKeyOut, api, data, keys, type Scope, useListing } from "../../api";
import {
  type Column,
  CursorTable,
  Empty,
  FormDialog,
  IconKey,
  IconPlus,
  SecretDialog,
  Time,
  useAct,
  useConfirm,
} from "../../components";
import { useText } from "../../i18n";
import { useMe } from "../../session/store";
import { accountTexts } from "./account.texts";

const SCOPES: readonly Scope[] = [
  "account:read",
  "account:write",
  "tasks:read",
  "tasks:write",
  "schedules:read",
  "schedules:write",
  "locks:read",
  "locks:write",
  "webhooks:read",
  "webhooks:write",
  "notifications:read",
  "notifications:write",
  "files:read",
  "files:write",
  "audit:read",
  "billing:read",
  "billing:write",
];

export function ApiKeys() {
  const t = useText(accountTexts);
  const confirm = useConfirm();
  const { act } = useAct(keys.apiKeys.all);
  const [adding, setAdding] = useState(false);
  const listing = useListing<ApiKeyOut>(keys.apiKeys.all, (cursor) =>
    data(api.GET("/v1/api-keys", { params: { query: { limit: 50, cursor } } })),
  );
  const revoke = async (key: ApiKeyOut) => {
    const title = t("revokeTitle", { name: key.name });
    if (!(await confirm({ title, body: t("revokeText"), action: t("revoke"), danger: true }))) return;
    await act(() => api.DELETE("/v1/api-keys/{api_key_id}", { params: { path: { api_key_id: key.id } } }));
  };
  const columns: Column<ApiKeyOut>[] = [
    { key: "name", header: t("name"), width: "minmax(8rem, 1fr)", phone: "title", cell: (key) => <b>{key.name}</b> },
    { key: "hint", header: t("key"), width: "5rem", cell: (key) => <code>{key.hint}</code> },
    {
      key: "scopes",
      header: t("scopes"),
      width: "minmax(8rem, 1.4fr)",
      phone: "hidden",
      cell: (key) => (
        <Text size="sm" c="dimmed" truncate title={key.scopes.join(", ")}>
          {key.scopes.join(", ")}
        </Text>
      ),
    },
    {
      key: "used",
      header: t("used"),
      width: "7.5rem",
      cell: (key) => (key.last_used_at ? <Time at={key.last_used_at} /> : t("notUsed")),
    },
    {
      key: "expires",
      header: t("expires"),
      width: "7.5rem",
      cell: (key) => (key.expires_at ? <Time at={key.expires_at} /> : t("never")),
    },
    {
      key: "revoke",
      header: "",
      width: "6rem",
      align: "end",
      cell: (key) => (
        <Button size="compact-sm" variant="default" onClick={() => void revoke(key)}>
          {t("revoke")}
        </Button>
      ),
    },
  ];
  const add = (
    <Button leftSection={<IconPlus size={16} />} onClick={() => setAdding(true)}>
      {t("addKey")}
    </Button>
  );
  return (
    <>
      <Group justify="space-between" mb="sm">
        <Text size="sm" c="dimmed">
          {t("keysText")}
        </Text>
        {listing.items.length > 0 && add}
      </Group>
      <CursorTable
        label={t("keys")}
        listing={listing}
        columns={columns}
        rowKey={(key) => key.id}
        empty={<Empty icon={IconKey} title={t("noKeys")} text={t("noKeysText")} action={add} />}
      />
      {adding && <NewKey onClose={() => setAdding(false)} />}
    </>
  );
}

function NewKey({ onClose }: { onClose: () => void }) {
  const t = useText(accountTexts);
  const { user } = useMe();
  const [name, setName] = useState("");
  const [scopes, setScopes] = useState<string[]>(["tasks:read", "tasks:write", "files:read", "files:write"]);
  const [expires, setExpires] = useState("");
  const [made, setMade] = useState<string | null>(null);
  const save = async () => {
    const expires_at = expires ? new Date(`${expires}T23:59:59`).toISOString() : null;
    const answer = await data(api.POST("/v1/api-keys", { body: { name, scopes: scopes as Scope[], expires_at } }));
    setMade(answer.key);
  };
  if (made !== null) return <SecretDialog title={t("addKey")} label={t("made")} value={made} onClose={onClose} />;
  return (
    <FormDialog
      title={t("addKey")}
      action={t("addKey")}
      onSave={save}
      changes={keys.apiKeys.all}
      disabled={scopes.length === 0}
      onClose={onClose}
    >
      <TextInput
        label={t("name")}
        value={name}
        onChange={(event) => setName(event.currentTarget.value)}
        required
        maxLength={64}
        data-autofocus
      />
      <MultiSelect
        label={t("scopes")}
        data={[...SCOPES, ...(user.role === "ADMIN" ? (["admin"] as Scope[]) : [])]}
        value={scopes}
        onChange={setScopes}
        searchable
        required
      />
      <TextInput
        label={t("expires")}
        description={t("expiresHint")}
        type="date"
        value={expires}
        onChange={(event) => setExpires(event.currentTarget.value)}
      />
    </FormDialog>
  );
}
