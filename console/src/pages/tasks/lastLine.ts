/** Of a stack trace, what went wrong. */
export function lastLine(text: string): string {
  return text.trimEnd().split("\n").at(-1) ?? text;
}
