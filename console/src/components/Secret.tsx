import { Alert, Button, Code, CopyButton, Group, Stack, Text } from "@mantine/core";
import { useText } from "../i18n";
import { commonTexts } from "./components.texts";
import { IconCheck, IconCopy, IconKey } from "./icons";

/** Something that is shown once: a key, a secret, a password. */
export function Secret({ value, title }: { value: string; title: string }) {
  const t = useText(commonTexts);
  return (
    <Alert
      icon={<IconKey />}
      title={title}
      styles={{
        root: { background: "var(--good-ground)" },
        title: { color: "var(--good-ink)" },
        icon: { color: "var(--good-ink)" },
        message: { color: "var(--ink)" },
      }}
    >
      <Stack gap="xs">
        <Text size="sm">{t("shownOnce")}</Text>
        <Group gap="xs" wrap="nowrap">
          <Code style={{ overflowWrap: "anywhere", flex: 1, background: "var(--surface)" }} fz="sm" p={8}>
            {value}
          </Code>
          <CopyButton value={value}>
            {({ copied, copy }) => (
              <Button
                size="xs"
                variant="default"
                leftSection={copied ? <IconCheck size={14} /> : <IconCopy size={14} />}
                onClick={copy}
              >
                {copied ? t("copied") : t("copy")}
              </Button>
            )}
          </CopyButton>
        </Group>
      </Stack>
    </Alert>
  );
}
