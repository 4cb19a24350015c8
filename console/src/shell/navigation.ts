import type { Icon } from "../components";
import { IconBell, IconChartBar, IconListCheck, IconUser, IconWand, IconWebhook } from "../components";
import type { Texts } from "../i18n";
import { shellTexts } from "./shell.texts";

export interface Destination {
  readonly to: string;
  readonly icon: Icon;
  /** Where its name stands: a dictionary and a key of it. */
  readonly texts: Texts<Record<string, string>>;
  readonly name: string;
}

export const MINE: readonly Destination[] = [
  { to: "/remove", icon: IconWand, texts: shellTexts, name: "remove" },
  { to: "/tasks", icon: IconListCheck, texts: shellTexts, name: "tasks" },
  { to: "/usage", icon: IconChartBar, texts: shellTexts, name: "usage" },
  { to: "/webhooks", icon: IconWebhook, texts: shellTexts, name: "webhooks" },
  { to: "/notifications", icon: IconBell, texts: shellTexts, name: "notifications" },
  { to: "/account", icon: IconUser, texts: shellTexts, name: "account" },
];
