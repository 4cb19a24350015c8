import { expect, it } from "vitest";
import type { RemovalItemOut } from "../../api";
import { asUploaded, countBatch } from "./batch";

const one = (status: string, error_code: string | null = null) =>
  ({ status, error_code }) as Pick<RemovalItemOut, "status" | "error_code">;

it("counts as removed only what has a result", () => {
  // "8 of 10 done" stood above six results.
  const items = [
    ...Array.from({ length: 6 }, () => one("SUCCEEDED")),
    one("FAILED", "NEEDS_REVIEW"),
    one("FAILED", "POOR_RESULT"),
    one("RUNNING"),
    one("QUEUED"),
  ];
  expect(countBatch(items)).toEqual({ removed: 6, needYou: 2, withoutMark: 0, failed: 0, canceled: 0, underWay: 2 });
  const nothing = [one("FAILED", "NEEDS_REVIEW"), one("FAILED", "NO_MARK"), one("FAILED", "UNREADABLE")];
  expect(countBatch(nothing)).toMatchObject({ removed: 0, needYou: 1, withoutMark: 1, failed: 1 });
});

it("keeps the order of the upload", () => {
  const at = "2026-11-19T12:00:00Z";
  const listed = ["tsk_03", "tsk_02", "tsk_01"].map((id) => ({ id, created_at: at }));
  expect(asUploaded(listed).map((each) => each.id)).toEqual(["tsk_01", "tsk_02", "tsk_03"]);
});
