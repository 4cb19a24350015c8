import { useSyncExternalStore } from "react";

export type Language = "en" | "zh";

const KEY = "headrace.language";
const listeners = new Set<() => void>();
let current: Language = initial();

function initial(): Language {
  const chosen = remembered();
  if (chosen === "en" || chosen === "zh") return chosen;
  const wanted = typeof navigator === "undefined" ? [] : navigator.languages;
  for (const tag of wanted) {
    if (tag.toLowerCase().startsWith("zh")) return "zh";
    if (tag.toLowerCase().startsWith("en")) return "en";
  }
  return "en";
}

function remembered(): string | null {
  try {
    return localStorage.getItem(KEY);
  } catch {
    return null; // storage may be forbidden; the browser's language decides then
  }
}

/** The language that texts are shown in now, for what is no component. */
export function language(): Language {
  return current;
}

/** Show everything in this language from now on, also when the page is opened again. */
export function setLanguage(chosen: Language): void {
  current = chosen;
  try {
    localStorage.setItem(KEY, chosen);
  } catch {
    // It holds for this page then.
  }
  mark();
  for (const tell of listeners) tell();
}

/** Say in the document which language it is in, for screen readers and hyphenation. */
export function mark(): void {
  document.documentElement.lang = current === "zh" ? "zh-CN" : "en";
}

export function useLanguage(): Language {
  return useSyncExternalStore((tell) => {
    listeners.add(tell);
    return () => listeners.delete(tell);
  }, language);
}
