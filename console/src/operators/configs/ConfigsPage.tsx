import { Button, Group, Select, Stack, Switch, Text, TextInput } from "@mantine/core";
import { useQuery } from "@tanstack/react-query";
import { useState } from "react";
import {
  api,
  type ConfigKeyOut,
  type ConfigOut,
  type ConfigScope,
  data,
  ifMatch,
  keys,
  query,
  useListing,
} from "../../api";
import {
  type Column,
  CursorTable,
  Empty,
  FormDialog,
  IconAdjustments,
  IconPlus,
  Page,
  Panel,
  StateBadge,
  Time,
  tell,
  useAct,
  useConfirm,
  useFilters,
} from "../../components";
import { useText } from "../../i18n";
import { FilterBar, SelectFilter } from "../parts/FilterBar";
import { partTexts } from "../parts/parts.texts";
import { SchemaForm } from "../parts/SchemaForm";
import classes from "./Configs.module.css";
import { configTexts } from "./configs.texts";

const DEFAULTS = { key: "", scope: "" };

/** Values that are set while the product runs. */
export default function ConfigsPage() {
  const t = useText(configTexts);
  const part = useText(partTexts);
  const confirm = useConfirm();
  const filters = useFilters(DEFAULTS);
  const { values, set } = filters;
  const { act } = useAct(keys.configs.all);
  const [editing, setEditing] = useState<ConfigOut | "new" | null>(null);
  const registered = useQuery({ queryKey: keys.configKeys, queryFn: () => data(api.GET("/v1/admin/configs/keys")) });
  const known = registered.data?.items ?? [];
  const listing = useListing<ConfigOut>(keys.configs.list(values), (cursor) => {
    const asked = query({ key: values.key, scope: values.scope as ConfigScope });
    return data(api.GET("/v1/admin/configs", { params: { query: { ...asked, limit: 50, cursor } } }));
  });
  const remove = async (config: ConfigOut) => {
    const yes = await confirm({
      title: t("askUnset", { key: config.key }),
      body: t("unsetText"),
      action: t("unset"),
      danger: true,
    });
    if (!yes) return;
    const params = { path: { key: config.key }, query: { scope: config.scope, scope_id: config.scope_id } };
    await act(
      () => data(api.DELETE("/v1/admin/configs/{key}", { params, headers: ifMatch(config.version) })),
      t("removed"),
    );
  };
  const columns: Column<ConfigOut>[] = [
    { key: "key", header: t("key"), width: "minmax(8rem, 1fr)", phone: "title", cell: (config) => <b>{config.key}</b> },
    {
      key: "value",
      header: t("value"),
      width: "minmax(10rem, 2fr)",
      cell: (config) => <code className={classes.value}>{JSON.stringify(config.value)}</code>,
    },
    {
      key: "whom",
      header: t("whom"),
      width: "minmax(7rem, 0.8fr)",
      cell: (config) =>
        config.scope === "GLOBAL"
          ? t("everyone")
          : config.scope === "TENANT"
            ? t("tenant", { id: config.scope_id })
            : t("user", { id: config.scope_id }),
    },
    {
      key: "state",
      header: part("state"),
      width: "7.5rem",
      cell: (config) => (
        <StateBadge
          state={config.is_active ? "enabled" : "disabled"}
          label={config.is_active ? t("active") : t("inactive")}
        />
      ),
    },
    {
      key: "changed",
      header: t("changed"),
      width: "8rem",
      cell: (config) => <Time at={config.updated_at} />,
      phone: "hidden",
    },
    {
      key: "actions",
      header: "",
      width: "11rem",
      align: "end",
      cell: (config) => (
        <Group gap="xs" wrap="nowrap" justify="flex-end">
          <Button size="compact-sm" variant="default" onClick={() => setEditing(config)}>
            {t("set")}
          </Button>
          <Button size="compact-sm" variant="default" onClick={() => void remove(config)}>
            {t("unset")}
          </Button>
        </Group>
      ),
    },
  ];
  return (
    <Page
      title={t("title")}
      text={t("text")}
      actions={
        <Button leftSection={<IconPlus size={16} />} onClick={() => setEditing("new")}>
          {t("create")}
        </Button>
      }
    >
      <FilterBar active={filters.active} onClear={filters.clear}>
        <SelectFilter
          label={t("key")}
          value={values.key}
          onChange={(key) => set({ key })}
          width={220}
          choices={known.map(({ key }) => ({ value: key, label: key }))}
        />
        <SelectFilter
          label={t("scope")}
          value={values.scope}
          onChange={(scope) => set({ scope })}
          choices={(["GLOBAL", "TENANT", "USER"] as const).map((value) => ({ value, label: t(value) }))}
        />
      </FilterBar>
      <CursorTable
        label={t("title")}
        listing={listing}
        columns={columns}
        rowKey={(config) => `${config.key} ${config.scope} ${config.scope_id}`}
        empty={<Empty icon={IconAdjustments} title={t("none")} text={t("noneText")} />}
      />
      <Panel title={t("keys")}>
        <Stack gap="sm">
          {known.map((each) => (
            <div key={each.key}>
              <Group gap="xs">
                <b>{each.key}</b>
                {each.public && <StateBadge state="public" label={t("public")} tone="neutral" />}
              </Group>
              <Text size="sm" c="dimmed">
                {each.description} {t("default")}: <code>{JSON.stringify(each.default)}</code>
              </Text>
            </div>
          ))}
        </Stack>
      </Panel>
      {editing && (
        <SetValue config={editing === "new" ? null : editing} known={known} onClose={() => setEditing(null)} />
      )}
    </Page>
  );
}

function SetValue({
  config,
  known,
  onClose,
}: {
  config: ConfigOut | null;
  known: readonly ConfigKeyOut[];
  onClose: () => void;
}) {
  const t = useText(configTexts);
  const [key, setKey] = useState(config?.key ?? "");
  const [scope, setScope] = useState<ConfigScope>(config?.scope ?? "GLOBAL");
  const [scopeId, setScopeId] = useState(config?.scope_id ?? "");
  const [active, setActive] = useState(config?.is_active ?? true);
  const [value, setValue] = useState<unknown>(config?.value);
  const chosenKey = known.find((each) => each.key === key);
  const save = async () => {
    const options = {
      params: { path: { key }, query: { scope, scope_id: scope === "GLOBAL" ? undefined : scopeId } },
      body: { value: value as never, is_active: active },
      headers: config ? ifMatch(config.version) : undefined,
    };
    await data(api.PUT("/v1/admin/configs/{key}", options));
    tell(t("saved"));
    onClose();
  };
  return (
    <FormDialog
      title={config ? t("setTitle", { key }) : t("create")}
      size="lg"
      onSave={save}
      changes={keys.configs.all}
      disabled={!chosenKey || value === undefined}
      onClose={onClose}
    >
      {config === null && (
        <Select
          label={t("key")}
          placeholder={t("chooseKey")}
          required
          data={known.map((each) => each.key)}
          value={key || null}
          onChange={(chosen) => {
            setKey(chosen ?? "");
            setValue(known.find((each) => each.key === chosen)?.default);
          }}
        />
      )}
      {chosenKey && (
        <Text size="sm" c="dimmed">
          {chosenKey.description}
        </Text>
      )}
      {config === null && (
        <Group grow align="flex-end">
          <Select
            label={t("scope")}
            allowDeselect={false}
            data={(["GLOBAL", "TENANT", "USER"] as const).map((each) => ({ value: each, label: t(each) }))}
            value={scope}
            onChange={(chosen) => setScope((chosen ?? "GLOBAL") as ConfigScope)}
          />
          {scope !== "GLOBAL" && (
            <TextInput
              label={t("scopeId")}
              required
              value={scopeId}
              onChange={(event) => setScopeId(event.currentTarget.value)}
            />
          )}
        </Group>
      )}
      {chosenKey && <SchemaForm key={key} schema={chosenKey.value_schema} value={value} onChange={setValue} />}
      <Switch label={t("isActive")} checked={active} onChange={(event) => setActive(event.currentTarget.checked)} />
    </FormDialog>
  );
}
