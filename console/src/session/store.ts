// Who is signed in. Kept outside of React, for requests need it, too.
import { useSyncExternalStore } from "react";
import type { LoginOut, MeOut } from "../api";
import { credentials } from "../api/credentials";
import { errorOf } from "../api/problem";

export type Me = Pick<MeOut, "user" | "csrf_token" | "session_id">;

export type Session =
  | { state: "loading" }
  | { state: "out" }
  | { state: "in"; me: Me }
  /** The session has ended during work: the page stays, and asks for the password. */
  | { state: "expired"; me: Me };

const listeners = new Set<() => void>();
let session: Session = { state: "loading" };
let renewal: { promise: Promise<boolean>; settle: (renewed: boolean) => void } | null = null;

function set(next: Session): void {
  session = next;
  for (const tell of listeners) tell();
}

export function useSession(): Session {
  return useSyncExternalStore(
    (tell) => {
      listeners.add(tell);
      return () => listeners.delete(tell);
    },
    () => session,
  );
}

/** The signed-in user; for components within the shell, which is rendered only for one. */
export function useMe(): Me {
  const now = useSession();
  if (now.state === "in" || now.state === "expired") return now.me;
  throw new Error("no user is signed in");
}

/** Find out who this browser is signed in as. */
export async function load(): Promise<void> {
  for (;;) {
    try {
      const response = await fetch("/v1/me");
      if (response.ok) return set({ state: "in", me: (await response.json()) as MeOut });
      if (response.status === 401 || response.status === 403) return set({ state: "out" });
      throw await errorOf(response);
    } catch {
      await new Promise((wake) => setTimeout(wake, 1000)); // the server is starting, perhaps
    }
  }
}

/** A user has signed in. The same user continues where they were; another one starts fresh. */
export function signedIn(login: LoginOut): void {
  const before = session;
  const me: Me = { user: login.user, csrf_token: login.csrf_token, session_id: login.session.id };
  if (before.state === "expired" && before.me.user.id !== me.user.id) {
    forgetStored();
    location.assign("/");
    return;
  }
  set({ state: "in", me });
  renewal?.settle(true);
  renewal = null;
}

const leaving = new Set<() => void>();

/** Callbacks that clear state at sign-out: the next user of this computer may be another one. */
export function onSignedOut(forget: () => void): void {
  leaving.add(forget);
}

/** The id of the signed-in user. */
export function whoIsIn(): string | null {
  return session.state === "in" || session.state === "expired" ? session.me.user.id : null;
}

/** Sign out locally, and notify subscribers. */
export function signedOut(): void {
  set({ state: "out" });
  for (const forget of leaving) forget();
  forgetStored();
  renewal?.settle(false);
  renewal = null;
}

/** Also of pages that are not loaded: drafts, and the names of files on their way. */
function forgetStored(): void {
  try {
    sessionStorage.clear();
    for (const key of Object.keys(localStorage)) if (key.startsWith("headrace.upload.")) localStorage.removeItem(key);
  } catch {
    // Without storage nothing was kept.
  }
}

credentials.csrf = () => (session.state === "in" || session.state === "expired" ? session.me.csrf_token : null);

credentials.renew = () => {
  if (session.state === "loading" || session.state === "out") return Promise.resolve(false);
  if (renewal === null) {
    let settle: (renewed: boolean) => void = () => {};
    const promise = new Promise<boolean>((resolve) => {
      settle = resolve;
    });
    renewal = { promise, settle };
    set({ state: "expired", me: session.me });
  }
  return renewal.promise;
};

credentials.refresh = async () => {
  if (session.state !== "in") return false;
  const response = await fetch("/v1/me");
  if (!response.ok) return response.status === 401 ? credentials.renew() : false;
  const me = (await response.json()) as MeOut;
  if (me.user.id !== session.me.user.id) {
    location.assign("/"); // another tab has signed in as another user
    return false;
  }
  const changed = me.csrf_token !== session.me.csrf_token;
  set({ state: "in", me });
  return changed;
};
