import type { RemovalItemOut } from "../../api";
import { isOver } from "../../live/task";

// What a word or two of its owner is enough for: nothing is broken.
export const ASKS: readonly string[] = ["NEEDS_REVIEW", "NO_MARK", "POOR_RESULT", "SIGNED"];

type Counted = Pick<RemovalItemOut, "status" | "error_code">;

/** How the files of a batch stand: each is counted once. */
export interface BatchCounts {
  readonly removed: number;
  readonly needYou: number;
  readonly withoutMark: number;
  readonly failed: number;
  readonly canceled: number;
  readonly underWay: number;
}

export function countBatch(items: readonly Counted[]): BatchCounts {
  const counts = { removed: 0, needYou: 0, withoutMark: 0, failed: 0, canceled: 0, underWay: 0 };
  for (const each of items) counts[standing(each)] += 1;
  return counts;
}

function standing({ status, error_code }: Counted): keyof BatchCounts {
  if (!isOver(status)) return "underWay";
  if (status === "SUCCEEDED") return "removed";
  if (status === "CANCELED") return "canceled";
  if (error_code === "NO_MARK") return "withoutMark";
  return ASKS.includes(error_code ?? "") ? "needYou" : "failed";
}

/** Lists are newest first; a batch is shown in the order in which its files were chosen. */
export function asUploaded<T extends Pick<RemovalItemOut, "id" | "created_at">>(items: readonly T[]): T[] {
  return [...items].sort((one, other) => {
    const [first, second] = [one.created_at + one.id, other.created_at + other.id];
    return first < second ? -1 : first > second ? 1 : 0;
  });
}
