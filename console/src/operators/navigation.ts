import {
  IconAdjustments,
  IconArchive,
  IconCalendarTime,
  IconCreditCard,
  IconFlag,
  IconHistory,
  IconLayoutDashboard,
  IconListCheck,
  IconLock,
  IconMailForward,
  IconReceipt,
  IconServer,
  IconSettings,
  IconShieldCheck,
  IconStack2,
  IconUsers,
  IconWebhook,
} from "../components";
import type { Destination } from "../shell/navigation";
import { placeTexts } from "./navigation.texts";

const at = (name: string, icon: Destination["icon"]): Destination => ({
  to: `/operators/${name}`,
  icon,
  texts: placeTexts,
  name,
});

/** What administrators can go to, in groups; loaded with the shell, so it holds names and addresses only. */
export const OPERATOR_GROUPS: readonly { readonly name: string; readonly places: readonly Destination[] }[] = [
  {
    name: "groupWork",
    places: [
      at("overview", IconLayoutDashboard),
      at("tasks", IconListCheck),
      at("queues", IconStack2),
      at("workers", IconServer),
      at("schedules", IconCalendarTime),
      at("runs", IconHistory),
      at("locks", IconLock),
    ],
  },
  {
    name: "groupCustomers",
    places: [
      at("users", IconUsers),
      at("plans", IconCreditCard),
      at("ledger", IconReceipt),
      at("webhooks", IconWebhook),
    ],
  },
  {
    name: "groupRecords",
    places: [at("audit", IconShieldCheck), at("outbox", IconMailForward), at("archives", IconArchive)],
  },
  {
    name: "groupSystem",
    places: [at("configs", IconAdjustments), at("risks", IconFlag), at("settings", IconSettings)],
  },
];

export const OPERATORS: readonly Destination[] = OPERATOR_GROUPS.flatMap(({ places }) => places);
