import { expect, it } from "vitest";
import { toldBefore } from "./order";

it("says again where the mark is", () => {
  const blank = { hints: [], mask_asset_id: null, candidates: [] };
  expect(toldBefore({ ...blank, mode: "MANUAL", candidates: [1] })).toEqual({ candidates: [1] });
  expect(toldBefore({ ...blank, mode: "MANUAL", mask_asset_id: "ast_1" })).toEqual({ mask_asset_id: "ast_1" });
  const hints = [{ boxes: [[1, 2, 3, 4]] }];
  expect(toldBefore({ ...blank, mode: "MANUAL", hints })).toEqual({ hints });
});

it("leaves it to the server where it was left to it before", () => {
  expect(toldBefore({ mode: "AUTO", hints: [], mask_asset_id: null, candidates: [] })).toEqual({});
  expect(toldBefore(null)).toEqual({});
});
