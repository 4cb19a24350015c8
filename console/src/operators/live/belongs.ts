// Whether a received row belongs into a list, by the list's own filter.
import type { ExecutionItemOut, TaskFilterIn, TaskItemOut } from "../../api";
import { isOver } from "../../live/task";

export interface RunFilter {
  /** Whose; everybody's without. */
  readonly user_id?: string;
  readonly status?: ExecutionItemOut["status"][];
  readonly trigger?: ExecutionItemOut["trigger_type"];
  readonly type?: string;
  readonly schedule_id?: string;
  readonly due_after?: string;
}

const AT_ONCE_MS = 60_000;

/** Only new rows: older ones belong further down, on pages that are read on scrolling. */
function isNew(created_at: string): boolean {
  return Date.parse(created_at) > Date.now() - AT_ONCE_MS;
}

/** As in the server's list: what shows a step as its status runs, too. */
function isRunning({ status }: TaskItemOut): boolean {
  return status !== "QUEUED" && !isOver(status);
}

export function taskBelongs(task: TaskItemOut, filter: unknown): boolean {
  const { owner, status, type, queue, created_after, created_before, internal } = filter as TaskFilterIn;
  return (
    isNew(task.created_at) &&
    (!owner || owner === "*" || owner === task.user_id) &&
    (!status || status.includes(task.status) || (status.includes("RUNNING") && isRunning(task))) &&
    (!type || type === task.type) &&
    (!queue || queue === task.queue) &&
    (internal !== false || !task.type.startsWith("headrace.")) &&
    (!created_after || Date.parse(task.created_at) >= Date.parse(created_after)) &&
    (!created_before || Date.parse(task.created_at) < Date.parse(created_before))
  );
}

export function runBelongs(run: ExecutionItemOut, filter: unknown): boolean {
  if (typeof filter !== "object" || filter === null) return false;
  const { user_id, status, trigger, type, schedule_id, due_after } = filter as RunFilter;
  return (
    isNew(run.created_at) &&
    // A run does not say whose it is; its schedule does.
    (!user_id || user_id === "*" || schedule_id === run.schedule_id) &&
    (!status || status.includes(run.status)) &&
    (!trigger || trigger === run.trigger_type) &&
    (!type || type === run.type) &&
    (!schedule_id || schedule_id === run.schedule_id) &&
    (!due_after || Date.parse(run.scheduled_at) >= Date.parse(due_after))
  );
}
