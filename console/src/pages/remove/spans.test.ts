import { expect, it } from "vitest";
import { spans } from "./spans";

it("writes pages as spans", () => {
  expect(spans([3, 1, 2, 7, 9, 8])).toBe("1–3, 7–9");
  expect(spans([4])).toBe("4");
});
