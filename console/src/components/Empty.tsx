import { Stack, Text, ThemeIcon } from "@mantine/core";
import type { ReactNode } from "react";
import { useText } from "../i18n";
import { commonTexts } from "./components.texts";
import { type Icon, IconInbox } from "./icons";

/** How an empty list is shown, everywhere: what would be here, and how it gets here. */
export function Empty({
  title,
  text,
  action,
  icon: Drawn = IconInbox,
}: {
  title: string;
  text?: ReactNode;
  action?: ReactNode;
  icon?: Icon;
}) {
  return (
    <Stack align="center" gap="xs" py={48} px="md">
      <ThemeIcon
        size={56}
        radius="xl"
        variant="light"
        style={{ background: "var(--accent-soft)", color: "var(--accent)" }}
      >
        <Drawn size={28} />
      </ThemeIcon>
      <Text fw={600}>{title}</Text>
      {text && (
        <Text size="sm" c="dimmed" ta="center" maw={440} component="div">
          {text}
        </Text>
      )}
      {action}
    </Stack>
  );
}

/** An empty list that can be filtered: whether there is nothing, or nothing that matches; `advice` says how it would. */
export function NoRows({
  filtered,
  advice,
  ...nothing
}: { filtered: boolean; advice?: string | false } & Parameters<typeof Empty>[0]) {
  const t = useText(commonTexts);
  if (!filtered) return <Empty {...nothing} />;
  return <Empty title={t("nothingMatches")} text={advice || t("nothingMatchesText")} />;
}
