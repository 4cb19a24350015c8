import { expect, it } from "vitest";
import { toneOf } from "../../components/StateBadge";
import { healthOf } from "./health";

it("does not call an endpoint well that fails", () => {
  const since = "2026-11-19T12:00:00Z";
  expect(healthOf({ status: "ACTIVE", failing_since: null })).toBe("ACTIVE");
  expect(healthOf({ status: "ACTIVE", failing_since: since })).toBe("FAILING");
  expect(healthOf({ status: "PAUSED", failing_since: since })).toBe("PAUSED");
  expect(toneOf("FAILING")).toBe("bad");
});
