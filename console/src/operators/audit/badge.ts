import type { EventOut } from "../../api";
import type { Tone } from "../../components";
import { wordFor } from "../../i18n";
import { actionTexts, failureTexts } from "./audit.texts";

const ACTION_TONES: Record<string, Tone> = {
  created: "good",
  enabled: "good",
  granted: "good",
  updated: "active",
  deleted: "bad",
  revoked: "bad",
  disabled: "warn",
  bypassed: "warn",
};

/** What was done, in words and colour. A login that failed is on record as a login, with its outcome beside it. */
export function badgeOf(event: Pick<EventOut, "action" | "data">): { label: string; tone: Tone } {
  if (event.action === "login" && event.data?.outcome === "failure") {
    return { label: wordFor(failureTexts, event.data.purpose ? "confirmation" : "login"), tone: "bad" };
  }
  return { label: wordFor(actionTexts, event.action), tone: ACTION_TONES[event.action] ?? "neutral" };
}
