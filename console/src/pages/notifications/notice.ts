import { api, type NotificationOut } from "../../api";
import { formats, language, text, wordFor } from "../../i18n";
import { ASKS } from "../remove/batch";
import { removalTexts } from "../remove/remove.texts";
import { MEDIA } from "../tasks/failure";
import { notificationTexts } from "./notifications.texts";

/** What a notification says of its subject; each type has some of these. */
interface Subject {
  readonly task_id?: string;
  readonly type?: string;
  readonly title?: string;
  readonly error_code?: string;
  readonly batch_id?: string;
  readonly succeeded?: number;
  readonly needs_input?: number;
  readonly failed?: number;
  readonly percent?: number;
  readonly left?: number;
  readonly total?: number;
  readonly expire_at?: string;
}

export function subjectOf(each: Pick<NotificationOut, "payload">): Subject {
  return (each.payload ?? {}) as Subject;
}

/** What the server wrote; where this console has words of its own, in the language of now. */
export function wordsOf(each: NotificationOut): { title: string; body: string } {
  const t = text(notificationTexts);
  const { type = "", title, error_code = "", batch_id, expire_at, ...figures } = subjectOf(each);
  const { percent = 0, left = 0, total = 0 } = figures;
  if (batch_id) return { title: t("batch", { n: total }), body: ends(figures) };
  if (each.type === "QUOTA_REACHED") return { title: t("quota", { percent }), body: t("quotaText", { left, total }) };
  const until = expire_at ? formats.dayOf(new Date(expire_at), language()) : "";
  if (each.type === "SUBSCRIPTION_ACTIVATED") return { title: t("planActive"), body: t("planActiveText", { until }) };
  if (each.type === "SUBSCRIPTION_EXPIRING") return { title: t("planEnds"), body: t("planEndsText", { until }) };
  if (!MEDIA.includes(type)) return each;
  const called = title ? t("called", { title }) : "";
  const kind = wordFor(notificationTexts, `kind-${type}`);
  if (each.type === "TASK_SUCCEEDED") return { title: t("ready", { kind }) + called, body: t("readyText") };
  const why = wordFor(removalTexts, error_code);
  if (each.type !== "TASK_FAILED" || why === error_code) return each;
  return {
    title: t(ASKS.includes(error_code) ? "asks" : "failed", { kind }) + called,
    body: `${why} ${text(removalTexts)("nothingCharged")}`,
  };
}

/** How the files of a batch ended; a count of zero is left out. */
function ends({ succeeded = 0, needs_input = 0, failed = 0 }: Subject): string {
  const t = text(notificationTexts);
  const parts: [number, "batchReady" | "batchAsks" | "batchFailed"][] = [
    [succeeded, "batchReady"],
    [needs_input, "batchAsks"],
    [failed, "batchFailed"],
  ];
  return parts.flatMap(([n, name]) => (n > 0 ? [t(name, { n })] : [])).join(" · ");
}

/** Where its subject is; null if it is about none that has a page. */
export function placeOf(each: NotificationOut): string | null {
  const { task_id, type = "", batch_id } = subjectOf(each);
  if (batch_id) return `/remove/batch/${batch_id}`;
  if (task_id) return `/${MEDIA.includes(type) ? "remove" : "tasks"}/${task_id}`;
  return each.type === "QUOTA_REACHED" || each.type.startsWith("SUBSCRIPTION_") ? "/usage?tab=plans" : null;
}

export function markRead({ id }: NotificationOut): Promise<unknown> {
  const path = { notification_id: String(id) };
  return api.POST("/v1/notifications/{notification_id}/read", { params: { path } });
}

/** Mark as read what is shown, and nothing that came later. */
export function markAllRead(newest: NotificationOut | undefined): Promise<unknown> {
  return api.POST("/v1/notifications/read-all", { body: { up_to: newest?.id ?? null } });
}
