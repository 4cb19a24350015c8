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
} from "../components";
import type { Destination } from "../shell/navigation";
import { placeTexts } from "./navigation.texts";

const at = (name: string, icon: Destination["icon"]): Destination => ({
  to: `/operators/${name}`,
  icon,
  texts: placeTexts,
  name,
});

/** What administrators can go to; loaded with the shell, so it holds names and addresses only. */
export const OPERATORS: readonly Destination[] = [
  at("overview", IconLayoutDashboard),
  at("tasks", IconListCheck),
  at("queues", IconStack2),
  at("workers", IconServer),
  at("schedules", IconCalendarTime),
  at("runs", IconHistory),
  at("locks", IconLock),
  at("audit", IconShieldCheck),
  at("users", IconUsers),
  at("plans", IconCreditCard),
  at("ledger", IconReceipt),
  at("outbox", IconMailForward),
  at("configs", IconAdjustments),
  at("risks", IconFlag),
  at("archives", IconArchive),
  at("settings", IconSettings),
];
