import type { StepOut, TaskOut } from "../../api";

export interface Bar {
  readonly step: StepOut;
  /** Where it begins and how long it is, as parts of the whole. */
  readonly from: number;
  readonly share: number;
  readonly ms: number;
  readonly state: "done" | "failed" | "running";
}

/** Steps as bars on one scale, from the first start to the last end, or to now for what runs. */
export function bars(task: Pick<TaskOut, "finished_at">, steps: readonly StepOut[], now: number): Bar[] {
  const begun = steps.filter((step) => step.started_at !== null);
  const startOf = (step: StepOut) => new Date(step.started_at ?? 0).getTime();
  const endOf = (step: StepOut) => {
    if (step.ended_at !== null) return new Date(step.ended_at).getTime();
    // One that an interruption cut off ended with its task at the latest.
    return task.finished_at !== null ? new Date(task.finished_at).getTime() : now;
  };
  const first = Math.min(...begun.map(startOf));
  const last = Math.max(...begun.map(endOf));
  const whole = Math.max(last - first, 1);
  return begun
    .toSorted((a, b) => a.attempt - b.attempt || startOf(a) - startOf(b))
    .map((step) => {
      const ms = Math.max(endOf(step) - startOf(step), 0);
      const state = step.status === "FAILED" ? "failed" : step.ended_at === null ? "running" : "done";
      return { step, from: (startOf(step) - first) / whole, share: ms / whole, ms, state };
    });
}
