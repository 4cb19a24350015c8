import { useSyncExternalStore } from "react";
import { formats, useLanguage, useText } from "../i18n";
import { commonTexts } from "./components.texts";

// One clock for all times on a page.
const listeners = new Set<() => void>();
let now = Date.now();
let timer: ReturnType<typeof setInterval> | undefined;

function subscribe(tell: () => void): () => void {
  listeners.add(tell);
  if (timer === undefined) now = Date.now(); // it stood still while no page showed a time
  timer ??= setInterval(() => {
    now = Date.now();
    for (const each of listeners) each();
  }, 1000);
  return () => {
    listeners.delete(tell);
    if (listeners.size === 0) {
      clearInterval(timer);
      timer = undefined;
    }
  };
}

/** The time of now, to the second. */
export function useNow(): number {
  return useSyncExternalStore(subscribe, () => now);
}

/** How an instant is shown, everywhere: how long ago, and the exact time when pointed at. */
export function Time({ at, exact = false }: { at: string | null | undefined; exact?: boolean }) {
  const language = useLanguage();
  const t = useText(commonTexts);
  // Drawn again when the words change, not with every second: a list shows many.
  const relative = useSyncExternalStore(subscribe, () =>
    at ? formats.relative(new Date(at), new Date(now), language) : "",
  );
  if (!at) return <span>{t("never")}</span>;
  const absolute = formats.absolute(new Date(at), language);
  return (
    <time dateTime={at} className="figures" title={exact ? relative : absolute}>
      {exact ? absolute : relative}
    </time>
  );
}

/** The time between two instants; up to now where the second is missing. */
export function Elapsed({ from, to }: { from: string; to?: string | null }) {
  const language = useLanguage();
  const current = useNow();
  const ms = (to ? new Date(to).getTime() : current) - new Date(from).getTime();
  return <span className="figures">{formats.duration(Math.max(ms, 0), language)}</span>;
}
