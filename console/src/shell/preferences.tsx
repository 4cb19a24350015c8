import { ActionIcon, Menu, Tooltip, useMantineColorScheme } from "@mantine/core";
import { api } from "../api";
import { IconCheck, IconDeviceDesktop, IconLanguage, IconMoon, IconSun } from "../components";
import { type Language, setLanguage, useLanguage, useText } from "../i18n";
import { useSession } from "../session/store";
import { shellTexts } from "./shell.texts";

const LANGUAGES: readonly [Language, string][] = [
  ["en", "English"],
  ["zh", "简体中文"],
];

export function LanguageSwitch() {
  const t = useText(shellTexts);
  const chosen = useLanguage();
  const session = useSession();
  const choose = (wanted: Language) => {
    setLanguage(wanted);
    // Notifications are written on the server, in the language that it knows of.
    if (session.state === "in")
      void api.PUT("/v1/notifications/language", { body: { language: wanted } }).catch(() => {});
  };
  return (
    <Menu position="bottom-end">
      <Menu.Target>
        <Tooltip label={t("language")}>
          <ActionIcon variant="subtle" color="gray" size="lg" aria-label={t("language")}>
            <IconLanguage />
          </ActionIcon>
        </Tooltip>
      </Menu.Target>
      <Menu.Dropdown>
        {LANGUAGES.map(([tag, name]) => (
          <Menu.Item
            key={tag}
            lang={tag}
            onClick={() => choose(tag)}
            rightSection={tag === chosen ? <IconCheck size={14} /> : undefined}
          >
            {name}
          </Menu.Item>
        ))}
      </Menu.Dropdown>
    </Menu>
  );
}

export function ThemeSwitch() {
  const t = useText(shellTexts);
  const { colorScheme, setColorScheme } = useMantineColorScheme();
  const choices = [
    ["light", t("light"), IconSun],
    ["dark", t("dark"), IconMoon],
    ["auto", t("system"), IconDeviceDesktop],
  ] as const;
  const Shown = choices.find(([scheme]) => scheme === colorScheme)?.[2] ?? IconDeviceDesktop;
  return (
    <Menu position="bottom-end">
      <Menu.Target>
        <Tooltip label={t("theme")}>
          <ActionIcon variant="subtle" color="gray" size="lg" aria-label={t("theme")}>
            <Shown />
          </ActionIcon>
        </Tooltip>
      </Menu.Target>
      <Menu.Dropdown>
        {choices.map(([scheme, name, Drawn]) => (
          <Menu.Item
            key={scheme}
            leftSection={<Drawn size={16} />}
            rightSection={scheme === colorScheme ? <IconCheck size={14} /> : undefined}
            onClick={() => setColorScheme(scheme)}
          >
            {name}
          </Menu.Item>
        ))}
      </Menu.Dropdown>
    </Menu>
  );
}
