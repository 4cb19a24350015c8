export interface Suggestion {
  readonly kind: "title" | "error" | "type" | "owner" | "task";
  readonly value: string;
  readonly name: string;
}

const MOST_TYPES = 5;

/** What a typed text may mean, the most exact first. */
export function suggestionsFor(
  typed: string,
  types: readonly string[],
  owner: { readonly id: string; readonly name: string } | null,
): Suggestion[] {
  const text = typed.trim();
  if (text === "") return [];
  if (/^tsk_\w+$/.test(text)) return [{ kind: "task", value: text, name: text }];
  if (/^u_\w+$/.test(text)) return [{ kind: "owner", value: text, name: text }];
  const lower = text.toLowerCase();
  const found: Suggestion[] = [];
  if (owner && owner.name.toLowerCase() === lower) found.push({ kind: "owner", value: owner.id, name: owner.name });
  for (const name of types.filter((each) => each.toLowerCase().includes(lower)).slice(0, MOST_TYPES))
    found.push({ kind: "type", value: name, name });
  found.push({ kind: "title", value: text, name: text }, { kind: "error", value: text, name: text });
  return found;
}
