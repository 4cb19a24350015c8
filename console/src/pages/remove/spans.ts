/** 1, 2, 3, 7 as "1–3, 7". */
export function spans(pages: readonly number[]): string {
  const parts: [number, number][] = [];
  for (const page of [...pages].sort((a, b) => a - b)) {
    const last = parts.at(-1);
    if (last && page <= last[1] + 1) last[1] = page;
    else parts.push([page, page]);
  }
  return parts.map(([first, last]) => (first === last ? `${first}` : `${first}–${last}`)).join(", ");
}
