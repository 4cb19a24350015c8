import type { ScheduleItemOut } from "../../api";
import { formats, language, text } from "../../i18n";
import { scheduleTexts } from "./schedules.texts";

/** When it runs, in a few words. */
export function rhythmOf(schedule: Pick<ScheduleItemOut, "cron" | "interval" | "is_recurring">): string {
  const t = text(scheduleTexts);
  if (schedule.cron) return schedule.cron;
  if (schedule.interval) return t("every", { interval: formats.duration(schedule.interval * 1000, language()) });
  return t("once");
}

/** An instant in a zone of one's choice, which the reader's own may not be. */
export function inZone(at: string, zone: string): string {
  const shown: Intl.DateTimeFormatOptions = { dateStyle: "full", timeStyle: "short", hour12: false };
  const locale = language() === "zh" ? "zh-CN" : "en-GB";
  try {
    return new Date(at).toLocaleString(locale, { ...shown, timeZone: zone });
  } catch {
    return new Date(at).toLocaleString(locale, shown); // a zone that this browser does not know
  }
}

export function zones(): string[] {
  return ["UTC", ...Intl.supportedValuesOf("timeZone").filter((zone) => zone !== "UTC")];
}
