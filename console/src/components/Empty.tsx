import { Stack, Text, ThemeIcon } from "@mantine/core";
import type { ReactNode } from "react";
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
