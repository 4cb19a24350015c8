import { expect, it } from "vitest";
import { isLabel, labelLines, labelsOf } from "./labels";

it("reads labels as they are typed, and writes them so again", () => {
  const labels = { gpu: "yes", "zone/name": "eu-1" };
  expect(labelsOf(labelLines(labels))).toEqual(labels);
  expect(["gpu=yes", "gpu", "=yes", "gpu=", "a b=c"].map(isLabel)).toEqual([true, false, false, false, false]);
});
