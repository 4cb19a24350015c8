import type { EntryOut } from "../api";

/** Units leave the balance when they are held: using them takes nothing more. */
export function effectOf(entry: Pick<EntryOut, "status" | "direction" | "hold_id">): "gives" | "takes" | "none" {
  if (entry.status === "COMMITTED" && entry.hold_id !== null) return "none";
  return entry.direction === "CREDIT" ? "gives" : "takes";
}
