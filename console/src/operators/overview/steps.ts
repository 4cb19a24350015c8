import type { PointOut, StatisticsRangeOut } from "../../api";

export interface Step extends Partial<PointOut> {
  /** Milliseconds since 1970. */
  readonly time: number;
}

/** A step for every place on the axis; without a measurement there is only its time, and the line has a gap. */
export function stepsOf(statistics: StatisticsRangeOut): Step[] {
  const length = statistics.step_seconds * 1000;
  const first = Date.parse(statistics.since);
  const count = Math.round((Date.parse(statistics.until) - first) / length);
  const known = new Map(statistics.points.map((point) => [Date.parse(point.at), point]));
  const steps = Array.from({ length: count }, (_, index) => {
    const time = first + index * length;
    return { time, ...known.get(time) };
  });
  // The step under way has hardly begun: a drop at the end would only frighten.
  while (steps.length > 1 && steps.at(-1)?.at === undefined) steps.pop();
  return steps;
}

/** Failures of the service: a removal with a question to its owner, or without a mark, is none. */
export function failuresOf(point: Partial<Pick<PointOut, "failed" | "needs_input">>): number | undefined {
  return point.failed === undefined ? undefined : point.failed - (point.needs_input ?? 0);
}

/** What ended over all steps. */
export function totals(statistics: StatisticsRangeOut): { ended: number; failed: number; submitted: number } {
  let [ended, failed, submitted] = [0, 0, 0];
  for (const point of statistics.points) {
    ended += point.succeeded + point.failed + point.canceled;
    failed += failuresOf(point) ?? 0;
    submitted += point.submitted;
  }
  return { ended, failed, submitted };
}
