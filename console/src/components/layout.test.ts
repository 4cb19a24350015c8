import { expect, it } from "vitest";
import { layoutFor } from "./layout";

const columns = [{ width: "minmax(10rem, 2fr)" }, { width: "8rem" }, { width: "8rem", phone: "hidden" as const }];

it("shows what fits: all columns, fewer, or cards", () => {
  expect(layoutFor(columns, 30.5, false)).toBe("all");
  expect(layoutFor(columns, 30, false)).toBe("fewer");
  expect(layoutFor(columns, 21, false)).toBe("cards");
  expect(layoutFor(columns, 30.5, true)).toBe("fewer"); // the boxes take room, too
});
