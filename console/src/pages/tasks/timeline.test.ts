import { expect, it } from "vitest";
import type { LogOut, StepOut } from "../../api";
import { bars } from "./timeline";

const at = (second: number) => new Date(Date.UTC(2026, 0, 1, 0, 0, second)).toISOString();
const step = (
  name: string,
  attempt: number,
  from: number | null,
  to: number | null,
  status: StepOut["status"] = "SUCCEEDED",
): StepOut => ({
  name,
  attempt,
  status,
  detail: null,
  duration_ms: null,
  started_at: from === null ? null : at(from),
  ended_at: to === null ? null : at(to),
});
const ended = (attempt: number, second: number, status: LogOut["status"]): LogOut => ({
  id: second,
  attempt,
  status,
  message: null,
  created_at: at(second),
});
const task = { attempt: 1, status: "RUNNING" as const, created_at: at(0), started_at: at(0), finished_at: null };

it("draws attempts and their steps to one scale; what runs goes on until now", () => {
  const steps = [step("b", 2, 6, null, "RUNNING"), step("a", 1, 0, 4, "FAILED"), step("c", 2, null, null)];
  const one = { ...task, attempt: 2, started_at: at(5) };
  const drawn = bars(one, [ended(1, 4, "RETRIED")], steps, Date.parse(at(10)));
  expect(drawn.map((bar) => [bar.attempt, bar.step, bar.waited, bar.from, bar.share, bar.ms, bar.state])).toEqual([
    [1, null, 0, 0, 0.4, 4000, "failed"],
    [1, "a", 0, 0, 0.4, 4000, "failed"],
    [2, null, 0.1, 0.5, 0.5, 5000, "running"],
    [2, "b", 0, 0.6, 0.4, 4000, "running"],
  ]);
});

it("draws attempts without steps, and says of none how long it ran where its start is not on record", () => {
  const one = { ...task, attempt: 3, status: "FAILED" as const, started_at: at(8), finished_at: at(10) };
  const lines = [ended(1, 2, "RETRIED"), ended(2, 5, "RETRIED"), ended(3, 10, "FAILED")];
  const drawn = bars(one, lines, [], Date.parse(at(99)));
  expect(drawn.map((bar) => [bar.attempt, bar.waited, bar.from, bar.share, bar.ms, bar.state])).toEqual([
    [1, 0.2, 0.2, 0, null, "failed"],
    [2, 0.3, 0.5, 0, null, "failed"],
    [3, 0.3, 0.8, 0.2, 2000, "failed"],
  ]);
});

it("shows that the next attempt waits", () => {
  const queued = { ...task, status: "QUEUED" as const };
  const drawn = bars(queued, [ended(1, 4, "RETRIED")], [], Date.parse(at(8)));
  expect(drawn.map((bar) => [bar.attempt, bar.waited, bar.share, bar.state])).toEqual([
    [1, 0.5, 0, "failed"],
    [2, 0.5, 0, "waiting"],
  ]);
  const fresh = { ...task, attempt: 0, status: "QUEUED" as const, started_at: null };
  expect(bars(fresh, [], [], Date.parse(at(8))).map((bar) => bar.state)).toEqual(["waiting"]);
});

it("ends what was cut off with its task", () => {
  const over = { ...task, finished_at: at(2), status: "CANCELED" as const };
  const drawn = bars(over, [], [step("a", 1, 0, null)], Date.parse(at(999)));
  expect(drawn.map((bar) => bar.ms)).toEqual([2000, 2000]);
});
