/** Whether a key or a value holds what was searched for; an empty search finds nothing. */
export function matches(text: string, query: string): boolean {
  return query !== "" && text.toLowerCase().includes(query);
}

/** The paths of all objects and lists that must be open so that every match is seen. */
export function pathsToMatches(value: unknown, query: string): Set<string> {
  const open = new Set<string>();
  const visit = (node: unknown, path: string): boolean => {
    if (typeof node !== "object" || node === null) return matches(String(node), query);
    let found = false;
    for (const [key, inner] of Object.entries(node)) {
      const named = !Array.isArray(node) && matches(key, query);
      found = visit(inner, `${path}/${key}`) || named || found;
    }
    if (found) open.add(path);
    return found;
  };
  visit(value, "$");
  return open;
}

export function countMatches(value: unknown, query: string): number {
  if (typeof value !== "object" || value === null) return matches(String(value), query) ? 1 : 0;
  let count = 0;
  for (const [key, inner] of Object.entries(value)) {
    if (!Array.isArray(value) && matches(key, query)) count += 1;
    count += countMatches(inner, query);
  }
  return count;
}
