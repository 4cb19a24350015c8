import { UnstyledButton } from "@mantine/core";
import { useState } from "react";
import { useText } from "../i18n";
import { commonTexts } from "./components.texts";
import { copyText } from "./copy";
import classes from "./Id.module.css";
import { IconCheck, IconCopy } from "./icons";

/** How an id is shown, everywhere: its kind and its end, the whole when pointed at; a click copies it. */
export function Id({ id, full = false }: { id: string; full?: boolean }) {
  const t = useText(commonTexts);
  const [copied, setCopied] = useState(false);
  const copy = async () => {
    await copyText(id);
    setCopied(true);
    setTimeout(() => setCopied(false), 1500);
  };
  return (
    <UnstyledButton
      title={copied ? t("copied") : id}
      className={classes.id}
      aria-label={`${t("copy")} ${id}`}
      onClick={(event) => {
        event.stopPropagation();
        event.preventDefault();
        void copy();
      }}
    >
      <span>{full ? id : shortId(id)}</span>
      {copied ? <IconCheck size={13} /> : <IconCopy size={13} />}
    </UnstyledButton>
  );
}

export function shortId(id: string): string {
  const cut = id.lastIndexOf("_");
  const [kind, rest] = cut < 0 ? ["", id] : [id.slice(0, cut + 1), id.slice(cut + 1)];
  return rest.length <= 10 ? id : `${kind}…${rest.slice(-6)}`;
}
