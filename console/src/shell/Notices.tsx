import { Anchor, Text } from "@mantine/core";
import { useQuery } from "@tanstack/react-query";
import { Link } from "react-router";
import { api, data, keys } from "../api";
import { IconInfoCircle } from "../components";
import { useText } from "../i18n";
import { useCapabilities } from "../session/capabilities";
import classes from "./Notices.module.css";
import { announcementOf, contactOf, quotaLevelOf } from "./notices";
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

/** A quota that is nearly or wholly used, on every page of a customer. */
export function QuotaLine() {
  const t = useText(shellTexts);
  const balance = useQuery({
    queryKey: keys.usage.balance,
    queryFn: () => data(api.GET("/v1/usage/balance")),
    staleTime: 60_000,
  }).data;
  const level = balance ? quotaLevelOf(balance) : null;
  if (!balance || level === null) return null;
  return (
    <div className={classes.announcement} data-level={level === 100 ? "critical" : "warning"} role="status">
      <IconInfoCircle size={18} />
      <span>
        {level === 100 ? t("quotaUsed") : t("quotaLow", { left: balance.left, total: balance.total })}{" "}
        <Anchor component={Link} to="/usage?tab=plans" underline="always" c="inherit">
          {t("seePlans")}
        </Anchor>
      </span>
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
