import { Button, Group, Modal, type ModalProps, Stack, Text } from "@mantine/core";
import type { QueryKey } from "@tanstack/react-query";
import type { ReactNode } from "react";
import { useText } from "../i18n";
import { commonTexts } from "./components.texts";
import { ProblemAlert } from "./ProblemAlert";
import { Secret } from "./Secret";
import { useAct } from "./useAct";

interface DialogProps {
  readonly title: ReactNode;
  readonly onClose: () => void;
  readonly size?: ModalProps["size"];
  readonly children: ReactNode;
}

/** A dialog that is open while it is rendered. */
export function Dialog({ title, onClose, size = "md", children }: DialogProps) {
  const t = useText(commonTexts);
  return (
    <Modal
      opened
      onClose={onClose}
      size={size}
      title={<Text fw={600}>{title}</Text>}
      closeButtonProps={{ "aria-label": t("close") }}
    >
      {children}
    </Modal>
  );
}

interface FormDialogProps extends DialogProps {
  /** Does what is asked for, and closes or goes on to something else; what it throws is shown, and the form stays. */
  readonly onSave: () => Promise<unknown>;
  /** What is looked at again afterwards. */
  readonly changes: QueryKey;
  readonly action?: string;
  readonly danger?: boolean;
  readonly disabled?: boolean;
  /** Stands opposite the buttons. */
  readonly aside?: ReactNode;
}

/** A form in a dialog: nothing that was typed is lost when it is refused. */
export function FormDialog(props: FormDialogProps) {
  const { onSave, changes, action, danger = false, disabled = false, aside, children, ...dialog } = props;
  const t = useText(commonTexts);
  const { busy, error, attempt } = useAct(changes);
  return (
    <Dialog {...dialog}>
      <form
        onSubmit={(event) => {
          event.preventDefault();
          void attempt(onSave);
        }}
      >
        <Stack>
          {error !== null && <ProblemAlert error={error} />}
          {children}
          <Group justify="space-between">
            <span>{aside}</span>
            <Group>
              <Button variant="default" onClick={dialog.onClose}>
                {t("cancel")}
              </Button>
              <Button type="submit" loading={busy} disabled={disabled} color={danger ? "red.8" : undefined}>
                {action ?? t("save")}
              </Button>
            </Group>
          </Group>
        </Stack>
      </form>
    </Dialog>
  );
}

/** What was made, with the secret that is shown only now. */
export function SecretDialog({
  label,
  value,
  children,
  ...dialog
}: Omit<DialogProps, "children"> & { label: string; value: string | null; children?: ReactNode }) {
  const t = useText(commonTexts);
  return (
    <Dialog {...dialog}>
      <Stack>
        {children}
        {value !== null && <Secret title={label} value={value} />}
        <Button onClick={dialog.onClose}>{t("close")}</Button>
      </Stack>
    </Dialog>
  );
}
