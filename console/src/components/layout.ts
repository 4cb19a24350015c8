/** How the rows of a list are laid out in the room there is. */
export type Layout = "all" | "fewer" | "cards";

interface Track {
  readonly width?: string;
  readonly phone?: "title" | "fact" | "hidden";
}

export const TRACK = "minmax(6rem, 1fr)";
const GAP = 1.25;
const PADDING = 2;
const CHECKBOX = 2.25;

/** All columns where they fit, else those that a phone shows, too, and cards where even these do not; `room` in rem. */
export function layoutFor(columns: readonly Track[], room: number, selects: boolean): Layout {
  if (needed(columns, selects) <= room) return "all";
  return needed(columns.filter(isKept), selects) <= room ? "fewer" : "cards";
}

export function isKept(column: Track): boolean {
  return column.phone !== "hidden";
}

function needed(columns: readonly Track[], selects: boolean): number {
  const tracks = columns.map(({ width = TRACK }) => Number.parseFloat(width.replace("minmax(", "")));
  if (selects) tracks.push(CHECKBOX);
  return PADDING + GAP * (tracks.length - 1) + tracks.reduce((sum, track) => sum + track, 0);
}
