import type { BulkOut } from "../../api";
import { text } from "../../i18n";
import { bulkTexts } from "./tasks.texts";

/** What is done to what, in words. */
export function bulkName(bulk: Pick<BulkOut, "action" | "resource">): string {
  const t = text(bulkTexts);
  const names: Record<string, string> = {
    "cancel tasks": t("cancelTasks"),
    "retry tasks": t("retryTasks"),
    "delete tasks": t("deleteTasks"),
    "enable schedules": t("enableSchedules"),
    "disable schedules": t("disableSchedules"),
  };
  const key = `${bulk.action} ${bulk.resource}`;
  return names[key] ?? key;
}
