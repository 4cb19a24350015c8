import type { LogOut, StepOut, TaskOut } from "../../api";

/** An attempt, or a step of one, on the scale of the whole. Shares are parts of the whole. */
export interface Bar {
  readonly attempt: number;
  /** None: the attempt itself. */
  readonly step: string | null;
  /** The part before `from` in which an attempt was not known to run: it waited, or its start is not on record. */
  readonly waited: number;
  readonly from: number;
  readonly share: number;
  /** How long it ran; null where the start is not on record. */
  readonly ms: number | null;
  readonly state: "done" | "failed" | "running" | "waiting";
  readonly status: string;
  /** How the attempt ended, in the words of its handler. */
  readonly message: string | null;
}

type Timed = Pick<TaskOut, "attempt" | "status" | "created_at" | "started_at" | "finished_at">;

interface Span {
  readonly attempt: number;
  readonly since: number; // the end of the attempt before, or when the task was made
  readonly start: number | null;
  readonly end: number;
  readonly isOpen: boolean;
  readonly status: string;
  readonly message: string | null;
}

const time = (at: string) => new Date(at).getTime();
const FAILED: readonly string[] = ["FAILED", "RETRIED", "INTERRUPTED"];

/** Attempts with their steps, on one scale from the first start to the last end, or to now for what is under way. */
export function bars(task: Timed, lines: readonly LogOut[], steps: readonly StepOut[], now: number): Bar[] {
  const spans = spansOf(task, lines, steps, now);
  const [opening] = spans;
  if (!opening) return [];
  // The wait for the first start would make everything else small.
  const first = opening.start ?? opening.since;
  const whole = Math.max(Math.max(...spans.map(({ end }) => end)) - first, 1);
  const share = (ms: number) => Math.max(ms, 0) / whole;
  return spans.flatMap((span) => {
    const begin = span.start ?? span.end;
    const own: Bar = {
      attempt: span.attempt,
      step: null,
      waited: share(begin - Math.max(span.since, first)),
      from: share(begin - first),
      share: share(span.end - begin),
      ms: span.start === null ? null : Math.max(span.end - span.start, 0),
      state: span.isOpen
        ? span.start === null
          ? "waiting"
          : "running"
        : FAILED.includes(span.status)
          ? "failed"
          : "done",
      status: span.status,
      message: span.message,
    };
    return [own, ...stepsOf(span, steps).map((step) => barOf(step, span, first, share))];
  });
}

function barOf(step: StepOut, span: Span, first: number, share: (ms: number) => number): Bar {
  const start = time(step.started_at ?? "");
  // One that an interruption cut off ended with its attempt at the latest.
  const ms = Math.max((step.ended_at === null ? span.end : time(step.ended_at)) - start, 0);
  return {
    attempt: step.attempt,
    step: step.name,
    waited: 0,
    from: share(start - first),
    share: share(ms),
    ms,
    state: step.status === "FAILED" ? "failed" : step.ended_at === null ? "running" : "done",
    status: step.status,
    message: null,
  };
}

function stepsOf({ attempt }: Pick<Span, "attempt">, steps: readonly StepOut[]): StepOut[] {
  return steps
    .filter((step) => step.attempt === attempt && step.started_at !== null)
    .toSorted((a, b) => time(a.started_at ?? "") - time(b.started_at ?? ""));
}

/** When each attempt began and ended. A server keeps each end, and the start of the latest attempt alone. */
function spansOf(task: Timed, lines: readonly LogOut[], steps: readonly StepOut[], now: number): Span[] {
  const ends = new Map(lines.filter((line) => line.status !== "LOG").map((line) => [line.attempt, line]));
  const isOver = task.finished_at !== null;
  const count = Math.max(task.attempt, ...steps.map((step) => step.attempt), ...ends.keys(), 0);
  const waits = !isOver && (count === 0 || ends.has(count));
  const spans: Span[] = [];
  let since = time(task.created_at);
  for (let attempt = 1; attempt <= count + (waits ? 1 : 0); attempt += 1) {
    const line = ends.get(attempt);
    const [early] = stepsOf({ attempt }, steps);
    const known = attempt === task.attempt && task.started_at !== null && !waits ? task.started_at : early?.started_at;
    const end = line ? time(line.created_at) : isOver ? time(task.finished_at ?? "") : now;
    spans.push({
      attempt,
      since,
      start: known ? time(known) : null,
      end,
      isOpen: !line && !isOver,
      status: line?.status ?? task.status,
      message: line?.message ?? null,
    });
    since = end;
  }
  return spans;
}
