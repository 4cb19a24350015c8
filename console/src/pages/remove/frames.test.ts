import { expect, it } from "vitest";
import { frameAt, frameSeconds } from "./frames";

it("steps by the rate of the clip", () => {
  expect(frameSeconds({ frames: 300, duration_ms: 5000 })).toBeCloseTo(1 / 60);
  expect(frameSeconds({ frames: 240, duration_ms: 10_000 })).toBeCloseTo(1 / 24);
  expect(frameSeconds(null)).toBe(1 / 25);
  expect(frameSeconds({ frames: 0, duration_ms: 0 })).toBe(1 / 25);
});

it("lands in the middle of the next frame, and stays in the clip", () => {
  const frame = 1 / 60;
  let at = 0;
  for (const number of [1, 2, 3]) {
    at = frameAt(at, 1, frame, 5);
    expect(at / frame).toBeCloseTo(number + 0.5);
  }
  expect(frameAt(at, -1, frame, 5) / frame).toBeCloseTo(2.5);
  expect(frameAt(0, -1, frame, 5)).toBeCloseTo(frame / 2);
  expect(frameAt(5, 1, frame, 5)).toBeCloseTo(5 - frame / 2);
});
