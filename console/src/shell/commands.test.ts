import { expect, it } from "vitest";
import { matching } from "./commands";

it("finds places by a few letters, in the language of now or in English", () => {
  const places = [
    { label: "My tasks", also: "tasks" },
    { label: "审计日志", also: "audit" },
    { label: "Task types", also: "types" },
  ];
  expect(matching(places, "task").map((each) => each.label)).toEqual(["My tasks", "Task types"]);
  expect(matching(places, "aud").map((each) => each.label)).toEqual(["审计日志"]);
  expect(matching(places, "审").map((each) => each.label)).toEqual(["审计日志"]);
  expect(matching(places, "zzz")).toEqual([]);
  expect(matching(places, "")).toHaveLength(3);
});
