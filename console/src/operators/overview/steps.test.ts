import { expect, it } from "vitest";
import type { StatisticsRangeOut } from "../../api";
import { stepsOf, totals } from "./steps";

const point = { submitted: 3, succeeded: 2, failed: 2, needs_input: 1, canceled: 0 };
const statistics = {
  range: "hour",
  since: "2026-03-01T12:00:00Z",
  until: "2026-03-01T12:05:00Z",
  step_seconds: 60,
  points: [
    { at: "2026-03-01T12:01:00Z", ...point },
    { at: "2026-03-01T12:03:00Z", ...point },
  ],
  queues: [],
} as unknown as StatisticsRangeOut;

it("leaves a gap without measurements, and counts no question to an owner as a failure", () => {
  expect(stepsOf(statistics).map((step) => step.failed)).toEqual([undefined, 2, undefined, 2]);
  expect(totals(statistics)).toEqual({ ended: 8, failed: 2, submitted: 6 });
});
