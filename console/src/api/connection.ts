// Whether the server can be reached. Failed requests report it here; one probe then polls until it can.
import { useSyncExternalStore } from "react";

const PROBE_EVERY_MS = 1000;
const listeners = new Set<() => void>();
let lost = false;
let back: Promise<void> | null = null;

/** Resolves once the server answers again; everybody who waits shares one probe. */
export function whenBack(): Promise<void> {
  back ??= probe();
  return back;
}

async function probe(): Promise<void> {
  // One broken request is no outage: it is reported only when the server really does not answer.
  if (!(await answers())) {
    set(true);
    do await new Promise((wake) => setTimeout(wake, PROBE_EVERY_MS));
    while (!(await answers()));
    set(false);
  }
  back = null;
}

async function answers(): Promise<boolean> {
  try {
    return (await fetch("/healthz", { cache: "no-store", signal: AbortSignal.timeout(5000) })).ok;
  } catch {
    return false;
  }
}

function set(value: boolean): void {
  lost = value;
  for (const tell of listeners) tell();
}

export function useConnectionLost(): boolean {
  return useSyncExternalStore(subscribe, () => lost);
}

export function subscribe(tell: () => void): () => void {
  listeners.add(tell);
  return () => listeners.delete(tell);
}

export function isLost(): boolean {
  return lost;
}
