import { expect, it } from "vitest";
import { firstBox, nudged } from "./keyboardBox";

const SIZE = { width: 500, height: 300 };
const press = (key: string, more: { shiftKey?: boolean; altKey?: boolean } = {}) => ({
  key,
  shiftKey: false,
  altKey: false,
  ...more,
});

it("begins in the middle", () => {
  expect(firstBox(SIZE)).toEqual([188, 113, 125, 75]);
});

it("moves with arrows, resizes with Shift, and goes by a pixel with Alt", () => {
  const box = [100, 100, 50, 40] as const;
  expect(nudged(box, press("ArrowRight"), SIZE)).toEqual([110, 100, 50, 40]);
  expect(nudged(box, press("ArrowUp", { altKey: true }), SIZE)).toEqual([100, 99, 50, 40]);
  expect(nudged(box, press("ArrowDown", { shiftKey: true }), SIZE)).toEqual([100, 100, 50, 50]);
  expect(nudged(box, press("x"), SIZE)).toBeNull();
});

it("never leaves the picture, and never vanishes", () => {
  expect(nudged([0, 0, 50, 40], press("ArrowLeft"), SIZE)).toEqual([0, 0, 50, 40]);
  expect(nudged([445, 0, 50, 40], press("ArrowRight"), SIZE)).toEqual([450, 0, 50, 40]);
  expect(nudged([445, 0, 50, 40], press("ArrowRight", { shiftKey: true }), SIZE)).toEqual([445, 0, 55, 40]);
  expect(nudged([0, 0, 5, 40], press("ArrowLeft", { shiftKey: true }), SIZE)).toEqual([0, 0, 1, 40]);
});
