import type { EntryOut } from "../../api";

/** What one order, grant or adjustment did to the balance. */
export interface MergedEntry {
  readonly key: string;
  readonly taskId: string | null;
  readonly title: string | null;
  /** The newest of its entries: when it was, and why. */
  readonly last: EntryOut;
  /** Taken from the balance; negative if it was given. */
  readonly units: number;
  readonly state: "held" | "used" | "released" | "granted" | "returned";
}

/** The entries of a ledger, newest first, one row for each order: held, used and released parts are one matter. */
export function merged(entries: readonly EntryOut[]): MergedEntry[] {
  const groups = new Map<string, EntryOut[]>();
  for (const entry of entries) {
    const key = entry.task_id ?? entry.id;
    const group = groups.get(key);
    if (group) group.push(entry);
    else groups.set(key, [entry]);
  }
  return [...groups].map(([key, group]) => {
    const last = group[0] as EntryOut;
    const title = group.find((each) => each.task_title)?.task_title ?? null;
    return { key, taskId: last.task_id, title, last, ...outcome(group) };
  });
}

function outcome(group: readonly EntryOut[]): Pick<MergedEntry, "units" | "state"> {
  const sum = (wanted: (each: EntryOut) => boolean) =>
    group.filter(wanted).reduce((total, each) => total + each.units, 0);
  const granted = sum((each) => each.status === "COMMITTED" && each.direction === "CREDIT");
  const used = sum((each) => each.status === "COMMITTED" && each.direction === "DEBIT");
  if (group.every((each) => each.task_id === null)) return { units: used - granted, state: "granted" };
  // A task that runs again holds units again, whatever became of its earlier hold.
  const settled = new Set(group.flatMap((each) => (each.hold_id === null ? [] : [each.hold_id])));
  const held = sum((each) => each.status === "HELD" && !settled.has(each.id));
  if (held > 0) return { units: used - granted + held, state: "held" };
  if (granted > 0) return { units: used - granted, state: "returned" };
  return used > 0 ? { units: used, state: "used" } : { units: 0, state: "released" };
}
