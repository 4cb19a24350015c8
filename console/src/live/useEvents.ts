import { useEffect, useRef } from "react";
import { api, whenBack } from "../api";

type Handlers = Readonly<Record<string, (data: unknown) => void>>;

const LONGEST_PAUSE_MS = 15_000;

/**
 * Follow a stream of server-sent events while the component is mounted and its page is visible: browsers keep
 * six connections to a server, and ten tabs in the background must not use them up. A stream that breaks comes back by
 * itself, behind the last event that was seen; one that ended for good says so with `end` or `revoked`.
 */
export function useEvents(url: string | null, handlers: Handlers): void {
  const latest = useRef(handlers);
  useEffect(() => {
    latest.current = handlers;
  });
  const names = Object.keys(handlers).sort().join(" ");
  useEffect(() => {
    if (url === null) return;
    return follow(url, names.split(" "), (name, data) => latest.current[name]?.(data));
  }, [url, names]);
}

/** The same without React; gives what ends it. `onOpen` is called with whether events arrive at the moment. */
export function follow(
  url: string,
  names: readonly string[],
  tell: (name: string, data: unknown) => void,
  onOpen: (open: boolean) => void = () => {},
): () => void {
  let source: EventSource | null = null;
  let timer: ReturnType<typeof setTimeout> | undefined;
  let pause = 500;
  let over = false;

  const open = () => {
    if (over || source !== null || document.hidden) return;
    source = new EventSource(url);
    source.onopen = () => {
      pause = 500;
      onOpen(true);
    };
    source.onerror = () => {
      onOpen(false);
      // While it is CONNECTING the browser is at it; CLOSED means that the answer was a refusal, or nothing at all.
      if (source?.readyState === EventSource.CLOSED) again();
    };
    for (const name of new Set([...names, "end", "revoked"])) {
      source.addEventListener(name, (event) => {
        tell(name, JSON.parse((event as MessageEvent<string>).data));
        if (name === "end") stop();
        if (name === "revoked") again();
      });
    }
  };
  const close = () => {
    source?.close();
    source = null;
    onOpen(false);
  };
  const again = () => {
    close();
    clearTimeout(timer);
    timer = setTimeout(async () => {
      await whenBack();
      // An ordinary request asks for the password if the session is over; the stream itself cannot.
      await api.GET("/v1/me").then(open, () => again());
    }, pause);
    pause = Math.min(pause * 2, LONGEST_PAUSE_MS);
  };
  const look = () => (document.hidden ? close() : open());
  const stop = () => {
    over = true;
    close();
    clearTimeout(timer);
    document.removeEventListener("visibilitychange", look);
  };
  document.addEventListener("visibilitychange", look);
  open();
  return stop;
}
