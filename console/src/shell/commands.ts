import type { Icon } from "../components";

export interface Command {
  readonly to: string;
  readonly icon: Icon;
  readonly label: string;
  /** Another name it is found by. */
  readonly also: string;
}

/** What fits the letters: those that begin with them first. */
export function matching<T extends Pick<Command, "label" | "also">>(commands: readonly T[], typed: string): T[] {
  const text = typed.toLowerCase();
  const rank = (command: T) => {
    const names = [command.label.toLowerCase(), command.also.toLowerCase()];
    return names.some((name) => name.startsWith(text)) ? 0 : names.some((name) => name.includes(text)) ? 1 : 2;
  };
  return commands
    .map((command) => ({ command, rank: rank(command) }))
    .filter((each) => each.rank < 2)
    .sort((one, other) => one.rank - other.rank)
    .map((each) => each.command);
}
