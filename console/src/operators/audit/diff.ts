import type { DiffOut } from "../../api";

export interface Line {
  readonly field: string;
  readonly before: string | undefined;
  readonly after: string | undefined;
  readonly changed: boolean;
  /** The trail kept only a part of the value. */
  readonly cut: boolean;
  /** Changed, with a hidden value. */
  readonly hidden: boolean;
}

const HIDDEN = "(changed)";

/** Both sides of a change, field by field: what changed first, in the order of the object. */
export function linesOf(diff: DiffOut): Line[] {
  const [before, after] = [parse(diff.old_object), parse(diff.new_object)];
  const cut = new Set(diff.truncated_fields ?? []);
  const names = [...new Set([...Object.keys(before), ...Object.keys(after)])];
  const lines = names.map((field) => {
    const [was, is] = [shown(before[field]), shown(after[field])];
    const changed = diff.old_object !== null && diff.new_object !== null && was !== is;
    const isCut =
      cut.has(field) || [...cut].some((path) => path.startsWith(`${field}.`) || path.startsWith(`${field}[`));
    return { field, before: was, after: is, changed, cut: isCut, hidden: after[field] === HIDDEN };
  });
  return [...lines.filter((line) => line.changed), ...lines.filter((line) => !line.changed)];
}

function parse(text: string | null | undefined): Record<string, unknown> {
  if (!text) return {};
  try {
    const value: unknown = JSON.parse(text);
    return typeof value === "object" && value !== null ? (value as Record<string, unknown>) : { "": value };
  } catch {
    return { "": text }; // cut in the middle, long ago
  }
}

function shown(value: unknown): string | undefined {
  if (value === undefined) return undefined;
  return typeof value === "string" ? value : JSON.stringify(value, null, 1);
}
