import { describe, expect, it } from "vitest";
import { append, join, type Page, patch, type Rows, readUpTo, reread, rowsOf } from "./rows";

interface Row {
  id: number;
  state?: string;
}

const page = (from: number, to: number, next: string | null = "more"): Page<Row> => ({
  items: Array.from({ length: from - to + 1 }, (_, index) => ({ id: from - index })),
  next_cursor: next,
});
const ids = (rows: { readonly items: readonly Row[] }) => rows.items.map(({ id }) => id);

it("reads a list up to a limit, and says whether more rows follow", async () => {
  const cursors = { a: page(20, 11, "b"), b: page(10, 1, null) } as Record<string, Page<Row>>;
  const fetch = async (cursor?: string) => cursors[cursor ?? "a"] ?? page(0, 1, null);
  const some = await readUpTo(10, fetch);
  expect([ids(some).length, some.next]).toEqual([10, "b"]);
  const all = await readUpTo(11, fetch);
  expect([ids(all).length, all.next]).toEqual([20, null]);
});

describe("a list that is read again", () => {
  it("reads as many pages as were there, as long as they are few", async () => {
    const asked: (string | undefined)[] = [];
    const before = append(rowsOf(page(20, 11, "a")), page(10, 1, "b"));
    const found = await reread(before, async (cursor) => {
      asked.push(cursor);
      return cursor ? page(11, 2, "d") : page(21, 12, "c");
    });
    expect(asked).toEqual([undefined, "c"]);
    expect(ids(found)).toEqual(ids(page(21, 2)));
  });

  it("reads the beginning alone of a long one, and keeps the rest", async () => {
    const before: Rows<Row> = { items: page(2000, 1).items, next: "z", pages: 40, behind: false };
    let asked = 0;
    const found = await reread(before, async () => {
      asked += 1;
      return { items: [{ id: 2001, state: "new" }, ...page(2000, 1952).items], next_cursor: "y" };
    });
    expect(asked).toBe(1);
    expect(found.items.length).toBe(2001);
    expect(found.next).toBe("z");
  });

  it("says that it is behind where the beginnings do not touch", () => {
    const before: Rows<Row> = { items: page(200, 1).items, next: "z", pages: 4, behind: false };
    expect(join(rowsOf(page(400, 351)), before)).toEqual({ ...before, behind: true });
  });

  it("leaves out what is gone from its beginning", () => {
    const before: Rows<Row> = { items: page(10, 1).items, next: "z", pages: 4, behind: false };
    const head = rowsOf({ items: [{ id: 10 }, { id: 8 }, { id: 7 }], next_cursor: "y" });
    expect(ids(join(head, before))).toEqual([10, 8, 7, 6, 5, 4, 3, 2, 1]);
  });
});

describe("patch", () => {
  it("shows rows as they are now, and new ones that belong here first", () => {
    const rows = rowsOf<Row>({ items: [{ id: 2 }, { id: 1 }] });
    const told: Row[] = [
      { id: 1, state: "over" },
      { id: 3, state: "new" },
      { id: 4, state: "else" },
    ];
    expect(patch(rows, told, (row) => row.state === "new").items).toEqual([
      { id: 3, state: "new" },
      { id: 2 },
      { id: 1, state: "over" },
    ]);
  });
});
