import { expect, it } from "vitest";
import type { StepOut } from "../../api";
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

it("draws steps to one scale, by attempt; what runs goes on until now", () => {
  const steps = [step("b", 2, 6, null, "RUNNING"), step("a", 1, 0, 4, "FAILED"), step("c", 2, null, null)];
  const drawn = bars({ finished_at: null }, steps, Date.parse(at(10)));
  expect(drawn.map((bar) => [bar.step.name, bar.from, bar.share, bar.ms, bar.state])).toEqual([
    ["a", 0, 0.4, 4000, "failed"],
    ["b", 0.6, 0.4, 4000, "running"],
  ]);
});

it("ends what was cut off with its task", () => {
  const [bar] = bars({ finished_at: at(2) }, [step("a", 1, 0, null)], Date.parse(at(999)));
  expect(bar?.ms).toBe(2000);
});
