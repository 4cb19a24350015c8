import { Anchor, Text } from "@mantine/core";
import { IconInfoCircle } from "../components";
import { useText } from "../i18n";
import { useCapabilities } from "../session/capabilities";
import classes from "./Notices.module.css";
import { announcementOf, contactOf } from "./notices";
import { shellTexts } from "./shell.texts";

/** The operators' announcement, on every page. */
export function AnnouncementLine() {
  const configs = useCapabilities().data?.configs;
  const shown = announcementOf(configs, Date.now());
  if (!shown) return null;
  return (
    <div className={classes.announcement} data-level={shown.level} role="status">
      <IconInfoCircle size={18} />
      {shown.text}
    </div>
  );
}

/** Where people turn for help, if the operators have said so. */
export function ContactLine() {
  const t = useText(shellTexts);
  const contact = contactOf(useCapabilities().data?.configs);
  if (!contact) return null;
  const href = contact.url ?? `mailto:${contact.email}`;
  return (
    <Text size="sm" className={classes.contact}>
      {t("help")}{" "}
      <Anchor href={href} {...(contact.url ? { target: "_blank", rel: "noreferrer" } : {})}>
        {contact.email ?? t("helpPage")}
      </Anchor>
    </Text>
  );
}
