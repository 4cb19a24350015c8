import { expect, it } from "vitest";
import { linesOf } from "./diff";

it("puts what changed first, and marks what was cut or hidden", () => {
  const lines = linesOf({
    old_object: JSON.stringify({ name: "a", note: "x", password: "(hidden)", tags: [1] }),
    new_object: JSON.stringify({ name: "a", note: "<b>y</b>", password: "(changed)", tags: [1], extra: null }),
    truncated_fields: ["note"],
  });
  expect(lines.map((line) => [line.field, line.changed, line.cut, line.hidden])).toEqual([
    ["note", true, true, false],
    ["password", true, false, true],
    ["extra", true, false, false],
    ["name", false, false, false],
    ["tags", false, false, false],
  ]);
  expect(lines[0]?.after).toBe("<b>y</b>");
});

it("shows what was created without calling it changed, and what is no JSON any more as it is", () => {
  expect(linesOf({ old_object: null, new_object: '{"id": 1}' })).toMatchObject([{ field: "id", changed: false }]);
  expect(linesOf({ old_object: null, new_object: '{"id": "abc' })[0]?.after).toBe('{"id": "abc');
});
