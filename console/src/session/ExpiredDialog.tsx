import { Button, Modal, Stack, Text } from "@mantine/core";
import { useText } from "../i18n";
import { LoginForm } from "./LoginForm";
import { sessionTexts } from "./session.texts";
import { signedOut, useSession } from "./store";

/** Over whatever page is open: the session has ended, the page has not. */
export function ExpiredDialog() {
  const t = useText(sessionTexts);
  const session = useSession();
  return (
    <Modal
      opened={session.state === "expired"}
      onClose={() => {}}
      withCloseButton={false}
      closeOnEscape={false}
      closeOnClickOutside={false}
      title={<Text fw={600}>{t("expiredTitle")}</Text>}
      zIndex={1000}
    >
      <Stack>
        <Text size="sm" c="dimmed">
          {t("expiredText")}
        </Text>
        {session.state === "expired" && <LoginForm username={session.me.user.username} />}
        <Button variant="subtle" color="gray" onClick={signedOut}>
          {t("leave")}
        </Button>
      </Stack>
    </Modal>
  );
}
