import { expect, it } from "vitest";
import { missingParts, partOf } from "./parts";

it("goes on with the parts that are not there", () => {
  const stored = [{ number: 2, size_bytes: 5, sha256: null }];
  expect(missingParts({ parts: 4, part_bytes: 5, stored })).toEqual([1, 3, 4]);
});

it("cuts a file without a gap; the last part is what is left", async () => {
  const file = new Blob(["abcdefghijkl"]);
  const parts = [1, 2, 3].map((number) => partOf(file, { part_bytes: 5 }, number));
  expect(parts.map((part) => part.size)).toEqual([5, 5, 2]);
  expect((await Promise.all(parts.map((part) => part.text()))).join("")).toBe("abcdefghijkl");
});
