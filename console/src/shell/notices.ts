/** A line of the operators for everybody, by the config key `announcement`. */
export interface Announcement {
  readonly text: string;
  readonly level: "info" | "warning" | "critical";
}

/** Where people turn for help, by the config key `contact`. */
export interface Contact {
  readonly email: string | null;
  readonly url: string | null;
}

/** The announcement that is to be shown now; none after its end. */
export function announcementOf(configs: Record<string, unknown> | undefined, now: number): Announcement | null {
  const found = configs?.announcement as { text?: string; level?: string; until?: string | null } | null | undefined;
  if (!found?.text || (found.until && Date.parse(found.until) <= now)) return null;
  const level = found.level === "warning" || found.level === "critical" ? found.level : "info";
  return { text: found.text, level };
}

export function contactOf(configs: Record<string, unknown> | undefined): Contact | null {
  const found = configs?.contact as { email?: string | null; url?: string | null } | null | undefined;
  // The server takes web addresses only; anything else is never made a link.
  const url = found?.url && /^https?:\/\//.test(found.url) ? found.url : null;
  const email = found?.email ?? null;
  return url === null && email === null ? null : { email, url };
}

/** Which notice a quota deserves: at 80 and at 100 percent, as the server's notifications. */
export function quotaLevelOf({ left, total }: { left: number; total: number }): 80 | 100 | null {
  if (total <= 0) return null;
  return left <= 0 ? 100 : left * 5 <= total ? 80 : null;
}
