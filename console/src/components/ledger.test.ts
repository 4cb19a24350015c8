import { expect, it } from "vitest";
import { effectOf } from "./ledger";

it("counts a unit once that is held and then used, and gives released, granted and returned ones back", () => {
  expect(effectOf({ status: "HELD", direction: "DEBIT", hold_id: null })).toBe("takes");
  expect(effectOf({ status: "COMMITTED", direction: "DEBIT", hold_id: "led_1" })).toBe("none");
  expect(effectOf({ status: "RELEASED", direction: "CREDIT", hold_id: "led_1" })).toBe("gives");
  expect(effectOf({ status: "COMMITTED", direction: "CREDIT", hold_id: null })).toBe("gives");
  expect(effectOf({ status: "COMMITTED", direction: "DEBIT", hold_id: null })).toBe("takes");
});
