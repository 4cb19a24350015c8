import type { UsedDayOut } from "../../api";

/** The last days up to now, each once, with zeros where nothing was used; days are the server's, in UTC. */
export function everyDay(found: readonly UsedDayOut[], count: number, now: Date): UsedDayOut[] {
  const known = new Map(found.map((each) => [each.day, each]));
  return Array.from({ length: count }, (_, index) => {
    const day = new Date(now.getTime() - (count - 1 - index) * 86_400_000).toISOString().slice(0, 10);
    return known.get(day) ?? { day, used: 0, released: 0, tasks: 0 };
  });
}
