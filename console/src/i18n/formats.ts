import type { Language } from "./language";

const LOCALES: Record<Language, string> = { en: "en", zh: "zh-CN" };

/** Making a formatter takes longer than a thousand uses of it. */
function once<T>(make: (locale: string) => T): (chosen: Language) => T {
  const made: Partial<Record<Language, T>> = {};
  return (chosen) => {
    made[chosen] ??= make(LOCALES[chosen]);
    return made[chosen];
  };
}

const RELATIVE = once((locale) => new Intl.RelativeTimeFormat(locale, { numeric: "always" }));
const NOW = once((locale) => new Intl.RelativeTimeFormat(locale, { numeric: "auto" }));
const ABSOLUTE = once((locale) => new Intl.DateTimeFormat(locale, { dateStyle: "medium", timeStyle: "long" }));
const NUMBER = once((locale) => new Intl.NumberFormat(locale));

const DAY = 86_400;
const STEPS: readonly [Intl.RelativeTimeFormatUnit, number][] = [
  ["year", 31_536_000],
  ["month", 2_592_000],
  ["day", DAY],
  ["hour", 3600],
  ["minute", 60],
  ["second", 1],
];

/** "3 minutes ago", "in 2 days". Never "tomorrow": what is 30 hours away may be the day after it. */
export function relative(at: Date, now: Date, chosen: Language): string {
  const seconds = Math.round((at.getTime() - now.getTime()) / 1000);
  for (const [unit, length] of STEPS) {
    if (Math.abs(seconds) < length) continue;
    const whole = length >= DAY ? Math.round : Math.trunc; // of days not almost one less; of hours never 24
    return RELATIVE(chosen).format(whole(seconds / length), unit);
  }
  return NOW(chosen).format(0, "second");
}

/** The instant in the reader's own zone, which is named. */
export function absolute(at: Date, chosen: Language): string {
  return ABSOLUTE(chosen).format(at);
}

export function shortDate(at: Date, chosen: Language): string {
  return at.toLocaleDateString(LOCALES[chosen], { month: "short", day: "numeric" });
}

export function dayOf(at: Date, chosen: Language): string {
  return at.toLocaleDateString(LOCALES[chosen], { dateStyle: "medium" });
}

/** "1.4 s", "3 min 5 s", "2 h 10 min". */
export function duration(ms: number, chosen: Language): string {
  const [s, min, h, d] = chosen === "zh" ? [" 秒", " 分", " 小时", " 天"] : [" s", " min", " h", " d"];
  if (ms < 1000) return `${Math.round(ms)} ${chosen === "zh" ? "毫秒" : "ms"}`;
  const seconds = ms / 1000;
  if (seconds < 10) return `${seconds.toFixed(1)}${s}`;
  const whole = Math.round(seconds);
  if (whole < 60) return `${whole}${s}`;
  if (whole < 3600) return join(Math.floor(whole / 60), min, whole % 60, s);
  if (whole < 86_400) return join(Math.floor(whole / 3600), h, Math.floor((whole % 3600) / 60), min);
  return join(Math.floor(whole / 86_400), d, Math.floor((whole % 86_400) / 3600), h);
}

function join(many: number, unit: string, rest: number, smaller: string): string {
  return rest ? `${many}${unit} ${rest}${smaller}` : `${many}${unit}`;
}

const SIZES = ["B", "kB", "MB", "GB", "TB"];

export function bytes(size: number): string {
  let value = size;
  let unit = 0;
  while (value >= 1000 && unit < SIZES.length - 1) {
    value /= 1000;
    unit += 1;
  }
  // A number is not parted from its unit at the end of a line.
  return `${unit === 0 || value >= 100 ? Math.round(value) : value.toFixed(1)}\u00a0${SIZES[unit] ?? ""}`;
}

export function number(value: number, chosen: Language, options?: Intl.NumberFormatOptions): string {
  return options ? value.toLocaleString(LOCALES[chosen], options) : NUMBER(chosen).format(value);
}

export function percent(share: number, chosen: Language): string {
  return share.toLocaleString(LOCALES[chosen], { style: "percent", maximumFractionDigits: share < 0.1 ? 1 : 0 });
}

export function money(cents: number, currency: string, chosen: Language): string {
  return (cents / 100).toLocaleString(LOCALES[chosen], { style: "currency", currency });
}
