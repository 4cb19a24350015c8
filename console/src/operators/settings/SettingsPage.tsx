import { Group, Stack, Switch, Text } from "@mantine/core";
import { useQuery } from "@tanstack/react-query";
import { api, data, keys, type SettingOut } from "../../api";
import { Empty, Loaded, Page, Panel, StateBadge, useFilters } from "../../components";
import { useText } from "../../i18n";
import { FilterBar, TextFilter } from "../parts/FilterBar";
import classes from "./Settings.module.css";
import { settingTexts } from "./settings.texts";

const DEFAULTS = { q: "", chosen: "" };

/** What was chosen, with secrets hidden. */
export default function SettingsPage() {
  const t = useText(settingTexts);
  const filters = useFilters(DEFAULTS);
  const { values, set } = filters;
  const query = useQuery({ queryKey: keys.settings, queryFn: () => data(api.GET("/v1/admin/settings")) });
  const wanted = values.q.toLowerCase();
  const shown = (query.data?.items ?? []).filter(
    (setting) =>
      (values.chosen === "" || setting.chosen) &&
      `${setting.name} ${setting.description}`.toLowerCase().includes(wanted),
  );
  const groups = new Map<string, SettingOut[]>();
  for (const setting of shown) groups.set(setting.group, [...(groups.get(setting.group) ?? []), setting]);
  return (
    <Page title={t("title")} text={t("text")}>
      <FilterBar active={filters.active} onClear={filters.clear}>
        <TextFilter label={t("search")} value={values.q} onChange={(q) => set({ q })} width={260} />
        <Switch
          mb={8}
          label={t("onlyChosen")}
          checked={values.chosen !== ""}
          onChange={(event) => set({ chosen: event.currentTarget.checked ? "yes" : "" })}
        />
      </FilterBar>
      <Loaded query={query}>
        {() =>
          groups.size === 0 ? (
            <Panel>
              <Empty title={t("nothing")} />
            </Panel>
          ) : (
            [...groups].map(([group, settings]) => (
              <Panel key={group} title={group}>
                <Stack gap="md">
                  {settings.map((setting) => (
                    <Setting key={setting.name} setting={setting} />
                  ))}
                </Stack>
              </Panel>
            ))
          )
        }
      </Loaded>
    </Page>
  );
}

function Setting({ setting }: { setting: SettingOut }) {
  const t = useText(settingTexts);
  return (
    <div className={classes.setting}>
      <div>
        <code className={classes.name}>{setting.name}</code>
        <Text size="sm" c="dimmed">
          {setting.description}
        </Text>
      </div>
      <Group gap="xs" className={classes.value}>
        {setting.value === null || setting.value === "" ? (
          <Text size="sm" c="dimmed" span>
            {t("unset")}
          </Text>
        ) : (
          <code>{setting.value}</code>
        )}
        <StateBadge
          state={setting.chosen ? "chosen" : "default"}
          label={setting.chosen ? t("chosen") : t("standard")}
          tone={setting.chosen ? "active" : "neutral"}
        />
      </Group>
    </div>
  );
}
