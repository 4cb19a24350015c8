import { Modal, TextInput, UnstyledButton } from "@mantine/core";
import { type KeyboardEvent, useState } from "react";
import { useNavigate } from "react-router";
import { commonTexts, IconListCheck, IconSearch } from "../components";
import { useText, wordFor } from "../i18n";
import { OPERATORS } from "../operators/navigation";
import { useMe } from "../session/store";
import classes from "./CommandPalette.module.css";
import { type Command, matching } from "./commands";
import { MINE } from "./navigation";
import { shellTexts } from "./shell.texts";

/** Goes anywhere by a few letters: Ctrl-K. */
export default function CommandPalette({ onClose }: { onClose: () => void }) {
  const t = useText(shellTexts);
  const common = useText(commonTexts);
  const navigate = useNavigate();
  const { user } = useMe();
  const [text, setText] = useState("");
  const [at, setAt] = useState(0);
  const isAdmin = user.role === "ADMIN";
  const places = (isAdmin ? [...OPERATORS, ...MINE] : MINE).map(
    ({ to, icon, texts, name }): Command => ({ to, icon, label: wordFor(texts, name), also: name }),
  );
  const typed = text.trim();
  const more: Command[] = /^tsk_\w+$/.test(typed)
    ? [{ to: `${isAdmin ? "/operators" : ""}/tasks/${typed}`, icon: IconListCheck, label: typed, also: "" }]
    : typed !== "" && isAdmin
      ? [
          {
            to: `/operators/tasks?title=${encodeURIComponent(typed)}`,
            icon: IconSearch,
            label: t("searchTasks", { text: typed }),
            also: "",
          },
        ]
      : [];
  const found = [...matching(places, typed), ...more];
  const go = (command: Command | undefined) => {
    if (!command) return;
    onClose();
    void navigate(command.to);
  };
  const onKey = (event: KeyboardEvent) => {
    if (event.key === "ArrowDown") setAt((now) => Math.min(found.length - 1, now + 1));
    else if (event.key === "ArrowUp") setAt((now) => Math.max(0, now - 1));
    else if (event.key === "Enter") go(found[at]);
    else return;
    event.preventDefault();
  };
  return (
    <Modal opened onClose={onClose} withCloseButton={false} padding={0} yOffset="12vh" centered={false} size="lg">
      <TextInput
        data-autofocus
        variant="unstyled"
        className={classes.input}
        aria-label={t("goTo")}
        placeholder={t("goTo")}
        leftSection={<IconSearch size={16} />}
        value={text}
        onChange={(event) => {
          setText(event.currentTarget.value);
          setAt(0);
        }}
        onKeyDown={onKey}
        role="combobox"
        aria-expanded
        aria-controls="commands"
        aria-activedescendant={found[at] ? `command-${at}` : undefined}
      />
      <div id="commands" role="listbox" aria-label={t("goTo")} className={classes.list}>
        {found.map((command, index) => (
          <UnstyledButton
            key={command.to}
            id={`command-${index}`}
            role="option"
            tabIndex={-1}
            aria-selected={index === at}
            className={classes.command}
            onClick={() => go(command)}
            onMouseMove={() => setAt(index)}
          >
            <command.icon size={16} />
            {command.label}
          </UnstyledButton>
        ))}
        {found.length === 0 && <div className={classes.none}>{common("nothingMatches")}</div>}
      </div>
    </Modal>
  );
}
