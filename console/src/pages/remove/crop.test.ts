import { expect, it } from "vitest";
import { cropAround } from "./crop";

it("shows the surroundings of the mark, within the picture", () => {
  const size = { width: 1000, height: 800 };
  expect(cropAround([], size)).toBeNull();
  expect(cropAround([[400, 300, 200, 100]], size)).toEqual({ x: 350, y: 270, width: 300, height: 160 });
  expect(cropAround([[950, 760, 50, 40]], size)).toEqual({ x: 840, y: 640, width: 160, height: 160 });
  expect(cropAround([[0, 0, 1000, 800]], size)).toEqual({ x: 0, y: 0, width: 1000, height: 800 });
});
