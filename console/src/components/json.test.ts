import { expect, it } from "vitest";
import { countMatches, pathsToMatches } from "./json";

const value = { name: "Ada", tags: ["x", { deep: "needle" }], other: { Needle: 1 } };

it("opens what must be open to see every match", () => {
  expect([...pathsToMatches(value, "needle")].sort()).toEqual(["$", "$/other", "$/tags", "$/tags/1"]);
  expect(pathsToMatches(value, "nowhere").size).toBe(0);
});

it("counts keys and values", () => {
  expect(countMatches(value, "needle")).toBe(2);
});
