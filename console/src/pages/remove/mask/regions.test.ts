import { expect, it } from "vitest";
import { middleOf } from "../CompareSlider";
import { regionAt } from "./MaskEditor";

it("finds the smallest region under a click", () => {
  const regions = [
    { id: 1, box: [0, 0, 100, 100], on: true },
    { id: 2, box: [10, 10, 20, 20], on: true },
  ];
  expect(regionAt(regions, { x: 15, y: 15 })?.id).toBe(2);
  expect(regionAt(regions, { x: 60, y: 60 })?.id).toBe(1);
  expect(regionAt(regions, { x: 160, y: 60 })).toBeNull();
});

it("begins the comparison at the marks, in the middle without any", () => {
  expect(middleOf([], 1000)).toBe(50);
  expect(middleOf([[800, 0, 100, 20]], 1000)).toBe(85);
  expect(
    middleOf(
      [
        [0, 0, 100, 20],
        [300, 0, 100, 20],
      ],
      1000,
    ),
  ).toBe(20);
  expect(middleOf([[990, 0, 10, 20]], 1000)).toBe(95);
});
