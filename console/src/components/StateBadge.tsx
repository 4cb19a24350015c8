import { useLanguage, wordFor } from "../i18n";
import classes from "./StateBadge.module.css";
import { stateTexts } from "./states.texts";

export type Tone = "neutral" | "waiting" | "active" | "good" | "warn" | "bad";

const TONES: Record<string, Tone> = {
  QUEUED: "waiting",
  UPLOADED: "waiting",
  PENDING: "waiting",
  WAITING: "waiting",
  pending: "waiting",
  HELD: "waiting",
  RUNNING: "active",
  PREPROCESSING: "active",
  DETECTING: "active",
  INPAINTING: "active",
  PACKAGING: "active",
  running: "active",
  STARTED: "active",
  COMPLETING: "active",
  REFUNDING: "active",
  MITIGATING: "active",
  stopping: "active",
  SUCCEEDED: "good",
  SUCCESS: "good",
  success: "good",
  ACTIVE: "good",
  FAILING: "bad",
  PAID: "good",
  COMPLETED: "good",
  DONE: "good",
  PUBLISHED: "good",
  ARCHIVED: "good",
  enabled: "good",
  alive: "good",
  active: "good",
  ok: "good",
  LOW: "good",
  RETRYING: "warn",
  PAUSED: "warn",
  PAST_DUE: "warn",
  SUSPENDED: "warn",
  interrupted: "warn",
  RETRIED: "warn",
  INTERRUPTED: "warn",
  warning: "warn",
  HIGH: "warn",
  MEDIUM: "waiting",
  timeout: "bad",
  TIMED_OUT: "bad",
  FAILED: "bad",
  failure: "bad",
  DEAD: "bad",
  silent: "bad",
  error: "bad",
  CRITICAL: "bad",
  OPEN: "waiting",
};

/** How a state is shown, everywhere: a word on one of six grounds. What is under way has a beating dot. */
export function StateBadge({ state, label, tone }: { state: string; label?: string; tone?: Tone }) {
  useLanguage();
  const shown = tone ?? toneOf(state);
  return (
    <span className={classes.badge} data-tone={shown} data-state={state}>
      <span className={classes.dot} aria-hidden="true" />
      {label ?? wordFor(stateTexts, state)}
    </span>
  );
}

export function toneOf(state: string): Tone {
  return TONES[state] ?? "neutral";
}
