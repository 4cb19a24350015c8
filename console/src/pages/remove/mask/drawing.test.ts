import { describe, expect, it } from "vitest";
import {
  add,
  boxBetween,
  EMPTY,
  effective,
  isMarked,
  keepBoxes,
  onlyBoxes,
  redo,
  type Stroke,
  scaled,
  undo,
} from "./drawing";
import { fitted, isZooming, pinch, toPicture, zoom } from "./view";

const stroke: Stroke = { kind: "brush", size: 4, points: [{ x: 1, y: 2 }] };
const box: Stroke = { kind: "box", box: [1, 2, 3, 4] };
const keep: Stroke = { kind: "keep", box: [9, 9, 9, 9] };
const of = (...strokes: Stroke[]) => ({ width: 100, height: 50, strokes });

describe("history", () => {
  it("undoes and redoes by stroke; a new stroke ends what could be redone", () => {
    const two = add(add(EMPTY, stroke), box);
    expect(undo(two).done).toEqual([stroke]);
    expect(redo(undo(two))).toEqual(two);
    expect(redo(add(undo(two), keep)).done).toEqual([stroke, keep]);
    expect(undo(EMPTY)).toBe(EMPTY);
  });

  it("can undo a clearing", () => {
    const cleared = add(add(EMPTY, stroke), { kind: "clear" });
    expect(effective(cleared.done)).toEqual([]);
    expect(effective(undo(cleared).done)).toEqual([stroke]);
  });
});

describe("what a drawing sends", () => {
  it("is boxes where only boxes were drawn, and a mask otherwise", () => {
    expect(onlyBoxes(of(box, keep))).toEqual([[1, 2, 3, 4]]);
    expect(onlyBoxes(of(box, stroke))).toBeNull();
    expect(keepBoxes(of(box, keep))).toEqual([[9, 9, 9, 9]]);
  });

  it("is nothing without a mark", () => {
    expect(isMarked(null)).toBe(false);
    expect(isMarked(of(keep))).toBe(false);
    expect(isMarked(of(stroke, { kind: "clear" }))).toBe(false);
    expect(isMarked(of(stroke))).toBe(true);
  });

  it("stays within the picture, in whole pixels", () => {
    expect(boxBetween({ x: 90.5, y: 60 }, { x: 10.2, y: -5 }, 80, 50)).toEqual([10, 0, 70, 50]);
    expect(boxBetween({ x: 5, y: 5 }, { x: 5.5, y: 20 }, 80, 50)).toBeNull();
  });
});

describe("the view", () => {
  const view = { scale: 2, x: 10, y: 20 };

  it("zooms to the cursor: what is under it stays under it", () => {
    const at = { x: 70, y: 50 };
    const nearer = zoom(view, 3, at, 0.1);
    expect(nearer.scale).toBe(6);
    expect(toPicture(nearer, at)).toEqual(toPicture(view, at));
    expect(zoom(view, 1000, at, 0.1).scale).toBe(32);
    expect(zoom(view, 0.001, at, 0.1).scale).toBe(0.1);
  });

  it("tells a mouse's wheel from two fingers on a trackpad", () => {
    const wheel = { deltaX: 0, deltaY: 100, deltaMode: 0, ctrlKey: false };
    expect(isZooming(wheel)).toBe(true);
    expect(isZooming({ ...wheel, deltaY: 3, deltaMode: 1 })).toBe(true);
    expect(isZooming({ ...wheel, deltaY: 4, ctrlKey: true })).toBe(true); // a pinch
    expect(isZooming({ ...wheel, deltaY: 12 })).toBe(false);
    expect(isZooming({ ...wheel, deltaX: 80 })).toBe(false);
  });

  it("follows two fingers", () => {
    const from = [
      { x: 0, y: 0 },
      { x: 10, y: 0 },
    ] as const;
    const to = [
      { x: 5, y: 5 },
      { x: 25, y: 5 },
    ] as const;
    const moved = pinch(view, from, to, 0.1);
    expect(moved.scale).toBe(4);
    for (const finger of [0, 1] as const) {
      const [before, after] = [toPicture(view, from[finger]), toPicture(moved, to[finger])];
      expect(after.x).toBeCloseTo(before.x);
      expect(after.y).toBeCloseTo(before.y);
    }
  });

  it("fits the whole picture into the middle", () => {
    expect(fitted({ width: 100, height: 50 }, { width: 200, height: 200 }, 0)).toEqual({ scale: 2, x: 0, y: 50 });
  });
});

it("scales a mask to a picture of another size", () => {
  const strokes = [
    { kind: "box", box: [10, 10, 20, 20] },
    { kind: "brush", size: 4, points: [{ x: 50, y: 25 }] },
  ] as const;
  expect(scaled({ width: 100, height: 50, strokes }, { width: 200, height: 100 })).toEqual({
    width: 200,
    height: 100,
    strokes: [
      { kind: "box", box: [20, 20, 40, 40] },
      { kind: "brush", size: 8, points: [{ x: 100, y: 50 }] },
    ],
  });
});
