import { type QueryClient, type QueryKey, useQueryClient } from "@tanstack/react-query";
import { useEffect } from "react";
import { type ExecutionItemOut, keys, patch, type TaskItemOut } from "../../api";
import { follow } from "../../live/useEvents";
import { runBelongs, taskBelongs } from "./belongs";

/** What is read again when something has changed. */
const SHOWN = {
  tasks: [keys.tasks.everybodysLists],
  runs: [keys.runs.all],
  schedules: [keys.schedules.all],
  queues: [keys.queues.all, keys.operators.overview],
  workers: [keys.workers.all],
  locks: [keys.locks.all],
  audit: [keys.audit.all],
  users: [keys.users.all],
  plans: [keys.plans.all, keys.subscriptions.all, keys.payments.all],
  ledger: [keys.ledger.all],
  outbox: [keys.outbox.all],
  configs: [keys.configs.all],
  risks: [keys.risks.all],
  archives: [keys.archives.all, keys.partitions.all],
  bulk: [keys.bulk.all],
} satisfies Record<string, readonly QueryKey[]>;
type Kind = keyof typeof SHOWN;

/** As `GET /v1/admin/changes` tells it. */
interface Marking {
  readonly kinds: readonly Kind[];
  readonly tasks: readonly TaskItemOut[];
  readonly runs: readonly ExecutionItemOut[];
}

/** Each look at these is in the audit trail, so pages that stay open look seldom. */
const AUDITED: readonly Kind[] = ["tasks", "runs", "schedules", "locks", "audit", "users", "plans", "ledger"];
const AUDITED_EVERY_MS = 30_000;
const OFTEN_MS = 2000;
const WITHOUT_NEWS_MS = 300_000;

let live = false;

/** The polling interval of a page: long while it receives change events. */
export function pollEvery(ms: number): () => number {
  return () => (live ? WITHOUT_NEWS_MS : ms);
}

/** Take note of what changes, for all operators' pages at once. */
export function useChanges(): void {
  const queries = useQueryClient();
  useEffect(() => {
    const again = rereader(queries);
    const stop = follow(
      "/v1/admin/changes",
      ["changed"],
      (name, event) => {
        if (name !== "changed") return;
        const { kinds, tasks, runs } = event as Marking;
        for (const kind of kinds) again.soon(kind);
        if (tasks.length > 0) {
          patchLists<TaskItemOut>(queries, keys.tasks.everybodysLists, tasks, taskBelongs);
          again.soon("queues");
        }
        if (runs.length > 0) {
          patchLists<ExecutionItemOut>(queries, keys.runs.all, runs, runBelongs);
          for (const { id } of runs) void queries.invalidateQueries({ queryKey: keys.runs.one(id) });
        }
      },
      (open) => {
        // Earlier changes are not sent; pages without change events poll.
        if (open !== live && !document.hidden) again.everything();
        live = open;
      },
    );
    return () => {
      stop();
      again.stop();
    };
  }, [queries]);
}

/** Reads again what is on the page, at once where it was not read lately, otherwise a little later. */
function rereader(queries: QueryClient) {
  const read = new Map<Kind, number>();
  const timers = new Map<Kind, ReturnType<typeof setTimeout>>();
  const look = (kind: Kind) => {
    timers.delete(kind);
    read.set(kind, Date.now());
    for (const queryKey of SHOWN[kind] ?? []) void queries.invalidateQueries({ queryKey });
  };
  const soon = (kind: Kind, atLeast = 0) => {
    if (timers.has(kind)) return;
    const pause = AUDITED.includes(kind) ? AUDITED_EVERY_MS : OFTEN_MS;
    const wait = (read.get(kind) ?? 0) + pause - Date.now();
    timers.set(kind, setTimeout(look, Math.max(atLeast, wait), kind));
  };
  return {
    soon,
    /** A little later: the server counts from its first look on. */
    everything() {
      for (const kind of Object.keys(SHOWN) as Kind[]) soon(kind, OFTEN_MS);
    },
    stop() {
      for (const timer of timers.values()) clearTimeout(timer);
    },
  };
}

/** The filter of a list is the last part of its key. */
function patchLists<T>(
  queries: QueryClient,
  queryKey: QueryKey,
  told: readonly T[],
  belongs: (row: T, filter: unknown) => boolean,
): void {
  for (const query of queries.getQueryCache().findAll({ queryKey, type: "active" })) {
    const rows = query.state.data as { items?: readonly T[] } | undefined;
    if (!Array.isArray(rows?.items)) continue;
    const filter = query.queryKey.at(-1);
    queries.setQueryData(
      query.queryKey,
      patch({ ...rows, items: rows.items }, told, (row) => belongs(row, filter)),
    );
  }
}
