import { Button, PasswordInput, Select, Text, TextInput } from "@mantine/core";
import { useDisclosure } from "@mantine/hooks";
import { useState } from "react";
import { api, data, keys, query, type Role, type UserOut, type UserStatus, useListing } from "../../api";
import {
  type Column,
  CursorTable,
  FormDialog,
  IconPlus,
  IconUsers,
  Id,
  NoRows,
  Page,
  SecretDialog,
  StateBadge,
  stateTexts,
  Time,
  useFilters,
} from "../../components";
import { useText, wordFor } from "../../i18n";
import { FilterBar, SelectFilter, TextFilter } from "../parts/FilterBar";
import { partTexts } from "../parts/parts.texts";
import { Views } from "../parts/Views";
import { userTexts } from "./users.texts";

const DEFAULTS = { username: "", status: "", role: "" };

/** Everybody who may sign in. */
export default function UsersPage() {
  const t = useText(userTexts);
  const part = useText(partTexts);
  const [creating, { open, close }] = useDisclosure(false);
  const filters = useFilters(DEFAULTS);
  const { values, set } = filters;
  const listing = useListing<UserOut>(keys.users.list(values), (cursor) => {
    const { username, status, role } = values;
    const asked = query({ username, status: status as UserStatus, role: role as Role });
    return data(api.GET("/v1/admin/users", { params: { query: { ...asked, limit: 50, cursor } } }));
  });
  const columns: Column<UserOut>[] = [
    {
      key: "name",
      header: t("name"),
      width: "minmax(7rem, 1.2fr)",
      phone: "title",
      cell: (user) => <b>{user.username ?? t("nobody")}</b>,
    },
    { key: "status", header: part("state"), width: "7rem", cell: (user) => <StateBadge state={user.status} /> },
    { key: "role", header: t("role"), width: "7.5rem", cell: (user) => t(user.role) },
    {
      key: "email",
      header: t("email"),
      width: "minmax(7rem, 1fr)",
      cell: (user) => user.email ?? "–",
      phone: "hidden",
    },
    { key: "login", header: t("lastLogin"), width: "8rem", cell: (user) => <Time at={user.last_login_at} /> },
    { key: "since", header: t("since"), width: "7rem", cell: (user) => <Time at={user.created_at} />, phone: "hidden" },
    { key: "id", header: part("id"), width: "7rem", cell: (user) => <Id id={user.id} />, phone: "hidden" },
  ];
  return (
    <Page
      title={t("title")}
      text={t("text")}
      actions={
        <Button leftSection={<IconPlus size={16} />} onClick={open}>
          {t("create")}
        </Button>
      }
    >
      <FilterBar active={filters.active} onClear={filters.clear} onReload={listing.reload} actions={<Views />}>
        <TextFilter label={t("name")} value={values.username} onChange={(username) => set({ username })} />
        <SelectFilter
          label={part("state")}
          value={values.status}
          onChange={(status) => set({ status })}
          choices={["ACTIVE", "SUSPENDED", "DELETED"].map((value) => ({ value, label: wordFor(stateTexts, value) }))}
        />
        <SelectFilter
          label={t("role")}
          value={values.role}
          onChange={(role) => set({ role })}
          choices={[
            { value: "ADMIN", label: t("ADMIN") },
            { value: "USER", label: t("USER") },
          ]}
        />
      </FilterBar>
      <CursorTable
        label={t("title")}
        listing={listing}
        columns={columns}
        rowKey={(user) => user.id}
        href={(user) => `/operators/users/${user.id}`}
        empty={<NoRows filtered={filters.active} icon={IconUsers} title={t("none")} />}
      />
      {creating && <Create onClose={close} />}
    </Page>
  );
}

function Create({ onClose }: { onClose: () => void }) {
  const t = useText(userTexts);
  const [form, setForm] = useState({ username: "", email: "", password: "", role: "USER" as Role });
  const [made, setMade] = useState<{ name: string; password: string | null } | null>(null);
  const save = async () => {
    const { username, role, ...optional } = form;
    const body = { username, role, ...query(optional) };
    const found = await data(api.POST("/v1/admin/users", { body }));
    setMade({ name: form.username, password: found.password });
  };
  if (made) {
    const label = t("theirPassword", { name: made.name });
    return (
      <SecretDialog title={t("createTitle")} label={label} value={made.password} onClose={onClose}>
        <Text>{t("made")}</Text>
      </SecretDialog>
    );
  }
  return (
    <FormDialog title={t("createTitle")} onSave={save} changes={keys.users.all} onClose={onClose}>
      <Text size="sm">{t("createText")}</Text>
      <TextInput
        label={t("name")}
        required
        data-autofocus
        value={form.username}
        onChange={(event) => setForm({ ...form, username: event.currentTarget.value })}
      />
      <TextInput
        label={t("email")}
        type="email"
        value={form.email}
        onChange={(event) => setForm({ ...form, email: event.currentTarget.value })}
      />
      <PasswordInput
        label={t("password")}
        autoComplete="new-password"
        value={form.password}
        onChange={(event) => setForm({ ...form, password: event.currentTarget.value })}
      />
      <Select
        label={t("role")}
        allowDeselect={false}
        data={[
          { value: "USER", label: t("USER") },
          { value: "ADMIN", label: t("ADMIN") },
        ]}
        value={form.role}
        onChange={(role) => setForm({ ...form, role: (role ?? "USER") as Role })}
      />
    </FormDialog>
  );
}
