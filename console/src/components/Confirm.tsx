import { Button, Group, Modal, Stack, Text, TextInput } from "@mantine/core";
import { createContext, type ReactNode, useCallback, useContext, useState } from "react";
import { useText } from "../i18n";
import { commonTexts } from "./components.texts";

interface Question {
  readonly title: string;
  readonly body?: ReactNode;
  readonly action: string;
  readonly danger?: boolean;
  /** What must be typed before it can be done, for what cannot be undone. */
  readonly type?: string;
}

type Ask = (question: Question) => Promise<boolean>;

const Context = createContext<Ask>(async () => false);

/** `if (await confirm({ title, body, action })) …` */
export function useConfirm(): Ask {
  return useContext(Context);
}

export function ConfirmProvider({ children }: { children: ReactNode }) {
  const t = useText(commonTexts);
  const [open, setOpen] = useState<(Question & { answer: (yes: boolean) => void }) | null>(null);
  const [typed, setTyped] = useState("");
  const ask = useCallback<Ask>(
    (question) =>
      new Promise((answer) => {
        setTyped("");
        setOpen({ ...question, answer });
      }),
    [],
  );
  const close = (yes: boolean) => {
    open?.answer(yes);
    setOpen(null);
  };
  return (
    <Context value={ask}>
      {children}
      <Modal
        opened={open !== null}
        onClose={() => close(false)}
        title={<Text fw={600}>{open?.title}</Text>}
        closeButtonProps={{ "aria-label": t("close") }}
      >
        <form
          onSubmit={(event) => {
            event.preventDefault();
            close(true);
          }}
        >
          <Stack>
            {open?.body && (
              <Text size="sm" component="div">
                {open.body}
              </Text>
            )}
            {open?.type && (
              <TextInput
                label={t("typeToConfirm", { word: open.type })}
                value={typed}
                onChange={(event) => setTyped(event.currentTarget.value)}
                autoComplete="off"
              />
            )}
            <Group justify="flex-end">
              <Button variant="default" onClick={() => close(false)} data-autofocus={open?.danger || undefined}>
                {t("cancel")}
              </Button>
              <Button
                type="submit"
                color={open?.danger ? "red.8" : undefined}
                disabled={open?.type !== undefined && typed !== open.type}
                data-autofocus={open?.danger ? undefined : true}
              >
                {open?.action}
              </Button>
            </Group>
          </Stack>
        </form>
      </Modal>
    </Context>
  );
}
