import { expect, it } from "vitest";
import type { RemovalItemOut } from "../../api";
import { successorOf } from "./successor";

const one = (id: string, status: string, at: string, asset_id = "ast_1") =>
  ({ id, status, asset_id, created_at: at }) as RemovalItemOut;

it("closes a removal by a later one of the same file that succeeded", () => {
  const first = one("tsk_1", "FAILED", "2026-11-19T10:00:00Z");
  const later = one("tsk_3", "SUCCEEDED", "2026-11-19T12:00:00Z");
  const others = [one("tsk_2", "FAILED", "2026-11-19T11:00:00Z"), first];
  expect(successorOf(first, others)).toBeNull();
  expect(successorOf(first, [one("tsk_0", "SUCCEEDED", "2026-11-19T09:00:00Z"), ...others])).toBeNull();
  expect(successorOf(first, [one("tsk_4", "SUCCEEDED", "2026-11-19T12:00:00Z", "ast_2"), ...others])).toBeNull();
  expect(successorOf(first, [later, ...others])).toBe(later);
});
