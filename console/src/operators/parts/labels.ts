const WORD = "[A-Za-z0-9][A-Za-z0-9._/-]{0,62}";
const LABEL = new RegExp(`^${WORD}=${WORD}$`);

/** Labels as they are typed: name=value. */
export function labelLines(labels: Readonly<Record<string, unknown>>): string[] {
  return Object.entries(labels).map(([name, value]) => `${name}=${value}`);
}

/** Whether a line is a label that the server takes. */
export function isLabel(line: string): boolean {
  return LABEL.test(line);
}

export function labelsOf(lines: readonly string[]): Record<string, string> {
  return Object.fromEntries(
    lines.map((line) => [line.slice(0, line.indexOf("=")), line.slice(line.indexOf("=") + 1)] as const),
  );
}
