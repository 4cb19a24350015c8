import { expect, it } from "vitest";
import { everyDay } from "./days";

it("shows every day once, with zeros where nothing was used", () => {
  const found = [{ day: "2026-03-01", used: 4, released: 1, tasks: 2 }];
  const days = everyDay(found, 3, new Date("2026-03-02T05:00:00Z"));
  expect(days.map((each) => [each.day, each.used])).toEqual([
    ["2026-02-28", 0],
    ["2026-03-01", 4],
    ["2026-03-02", 0],
  ]);
});
