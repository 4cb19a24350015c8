import { expect, it } from "vitest";
import type { DraftFile } from "./draft";
import { drawingBefore, hintsOf, isReady, manualBefore, modeOf, withRegions } from "./order";

it("says again where the mark is", () => {
  const blank = { hints: [], mask_asset_id: null, candidates: [] };
  expect(manualBefore({ ...blank, mode: "MANUAL", candidates: [1] })).toEqual({ candidates: [1] });
  expect(manualBefore({ ...blank, mode: "MANUAL", mask_asset_id: "ast_1" })).toEqual({ mask_asset_id: "ast_1" });
  const hints = [{ boxes: [[1, 2, 3, 4]] }];
  expect(manualBefore({ ...blank, mode: "MANUAL", hints })).toEqual({ hints });
});

it("leaves it to the server where it was left to it before", () => {
  expect(manualBefore({ mode: "AUTO", hints: [], mask_asset_id: null, candidates: [] })).toEqual({});
  expect(manualBefore(null)).toEqual({});
});

it("says of each page what is marked on it, and of all pages what is for all", () => {
  const strokes = [
    { kind: "box", box: [1, 1, 5, 5], page: 3 },
    { kind: "box", box: [2, 2, 5, 5] },
    { kind: "keep", box: [9, 9, 2, 2], page: 3 },
  ] as const;
  expect(hintsOf({ width: 20, height: 20, strokes })).toEqual([
    { boxes: [[2, 2, 5, 5]] },
    { boxes: [[1, 1, 5, 5]], keep: [[9, 9, 2, 2]], pages: [3, 3] },
  ]);
});

it("goes on from what was drawn before, or else from what was found", () => {
  const size = { width: 20, height: 10 };
  const found = [
    { box: [1.2, 2.7, 3.1, 4], pages: [2, 5], score: 0.5 },
    { box: [0, 0, 20, 2], pages: [1, 2], score: 0.15 }, // a letterhead: it is no mark until the user says so
  ];
  const mask = drawingBefore(
    { mode: "MANUAL", mask_asset_id: "ast_1", hints: [{ keep: [[1, 1, 2, 2]] }] },
    found,
    size,
  );
  expect(mask?.strokes).toEqual([
    { kind: "image", url: "/v1/assets/ast_1/content?inline=true" },
    { kind: "keep", box: [1, 1, 2, 2] },
  ]);
  expect(drawingBefore({ mode: "AUTO" }, found, size)?.strokes).toEqual([{ kind: "box", box: [1, 2, 4, 4], page: 2 }]);
  expect(drawingBefore({ mode: "AUTO" }, [], size)).toBeNull();
});

const region = { id: 1, box: [10.4, 20, 30, 5.5], pages: [], certain: true };
const file = { asset: {}, drawing: null, regions: null, chosen: [], touched: false } as unknown as DraftFile;
const drawn = { width: 100, height: 50, strokes: [{ kind: "brush", size: 4, points: [{ x: 1, y: 1 }] }] } as const;

it("leaves it to the server until the user says something", () => {
  expect(modeOf(file)).toBe("AUTO");
  expect(modeOf({ ...file, touched: true })).toBe("MANUAL");
  expect(modeOf({ ...file, drawing: drawn })).toBe("MANUAL");
  const keep = { ...drawn, strokes: [{ kind: "keep", box: [0, 0, 5, 5] }] } as const;
  expect(modeOf({ ...file, drawing: keep })).toBe("AUTO");
});

it("orders nothing where nothing is to be removed", () => {
  expect(isReady(file)).toBe(true); // not looked for yet
  expect(isReady({ ...file, asset: null })).toBe(false);
  expect(isReady({ ...file, regions: [] })).toBe(false);
  expect(isReady({ ...file, regions: [region as never], chosen: [1] })).toBe(true);
  expect(isReady({ ...file, regions: [region as never], chosen: [], touched: true })).toBe(false);
  expect(isReady({ ...file, regions: [], drawing: drawn })).toBe(true);
});

it("takes what was chosen together with what was drawn", () => {
  expect(withRegions({ drawing: null, chosen: [1], regions: [region] })).toBeNull();
  expect(withRegions({ drawing: drawn, chosen: [1], regions: [region] })?.strokes).toEqual([
    ...drawn.strokes,
    { kind: "box", box: [10, 20, 30, 6] },
  ]);
  expect(withRegions({ drawing: drawn, chosen: [], regions: [region] })?.strokes).toEqual(drawn.strokes);
});
