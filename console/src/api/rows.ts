// The rows of a list that is read page by page, and what becomes of them when its beginning is read again.

export interface Page<T> {
  items: T[];
  next_cursor?: string | null;
}

export interface Rows<T> {
  readonly items: readonly T[];
  /** Where the list goes on; null at its end. */
  readonly next: string | null;
  readonly pages: number;
  /** There are rows before the first of these that are not among them. */
  readonly behind: boolean;
}

/** Up to this many pages are reloaded completely; of longer lists only the beginning is. */
const MOST_REREAD = 3;

export function keyOf(row: unknown): string {
  const id = (row as { id?: unknown }).id;
  return id === undefined ? JSON.stringify(row) : String(id);
}

export function rowsOf<T>(page: Page<T>): Rows<T> {
  return { items: page.items, next: page.next_cursor ?? null, pages: 1, behind: false };
}

export function append<T>(rows: Rows<T>, page: Page<T>): Rows<T> {
  const known = new Set(rows.items.map(keyOf));
  const items = [...rows.items, ...page.items.filter((row) => !known.has(keyOf(row)))];
  return { ...rows, items, next: page.next_cursor ?? null, pages: rows.pages + 1 };
}

/** A list from its beginning, up to `most` rows; `next` says whether there are more. */
export async function readUpTo<T>(
  most: number,
  fetchPage: (cursor: string | undefined) => Promise<Page<T>>,
): Promise<Rows<T>> {
  let rows = rowsOf(await fetchPage(undefined));
  while (rows.next !== null && rows.items.length < most) rows = append(rows, await fetchPage(rows.next));
  return rows;
}

/** Reload the list. The visible rows keep their scroll position, and few pages are read. */
export async function reread<T>(
  before: Rows<T> | undefined,
  fetchPage: (cursor: string | undefined) => Promise<Page<T>>,
): Promise<Rows<T>> {
  let rows = rowsOf(await fetchPage(undefined));
  if (before === undefined) return rows;
  if (before.pages > MOST_REREAD) return join(rows, before);
  while (rows.pages < before.pages && rows.next !== null) rows = append(rows, await fetchPage(rows.next));
  return rows;
}

/** Join a reloaded beginning with the known rest. */
export function join<T>(head: Rows<T>, before: Rows<T>): Rows<T> {
  const last = head.items.at(-1);
  if (last === undefined || head.next === null) return head;
  const at = before.items.findIndex((row) => keyOf(row) === keyOf(last));
  if (at < 0) return { ...before, behind: true };
  const known = new Set(head.items.map(keyOf));
  const rest = before.items.slice(at + 1).filter((row) => !known.has(keyOf(row)));
  return { ...before, items: [...head.items, ...rest], behind: false };
}

/** Rows as they are now in place of what they were, and in front those that are new and belong here. */
export function patch<T, R extends { readonly items: readonly T[] }>(
  rows: R,
  told: readonly T[],
  belongs: (row: T) => boolean,
): R {
  const now = new Map(told.map((row) => [keyOf(row), row]));
  const items = rows.items.map((row) => {
    const newer = now.get(keyOf(row));
    now.delete(keyOf(row));
    return newer === undefined ? row : { ...row, ...newer };
  });
  const fresh = [...now.values()].filter(belongs);
  return { ...rows, items: [...fresh, ...items] };
}
