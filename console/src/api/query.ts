import type { ListTasksData } from "./schema";

/** The states that the description offers as filters of a list of tasks; the server takes the name of a step, too. */
export type ListedStatus = NonNullable<NonNullable<ListTasksData["query"]>["status"]>[number];

/** The values of a filter that takes several, from the address: `QUEUED,RUNNING`. */
export function several<T extends string>(value: string): T[] {
  return value === "" ? [] : (value.split(",") as T[]);
}

/** What is left of values without the empty ones. */
type Filled<T> = { [Name in keyof T]?: Exclude<T[Name], "" | null | undefined> };

/** The values that are set. An empty text or list, null and undefined are left out: a filter that is not set. */
export function query<T extends object>(values: T): Filled<T> {
  return Object.fromEntries(Object.entries(values).filter(([, value]) => isSet(value))) as Filled<T>;
}

function isSet(value: unknown): boolean {
  return value !== undefined && value !== null && value !== "" && !(Array.isArray(value) && value.length === 0);
}
