import { expect, it } from "vitest";
import { query } from "./query";

it("keeps what is set, false and zero too", () => {
  const values = { name: "", type: "report", owner: null, since: undefined, status: [], internal: false, limit: 0 };
  expect(query(values)).toEqual({ type: "report", internal: false, limit: 0 });
});
