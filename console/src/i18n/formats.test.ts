import { describe, expect, it } from "vitest";
import { bytes, duration, money, percent, relative } from "./formats";

const now = new Date("2026-03-01T12:00:00Z");
const ago = (seconds: number) => new Date(now.getTime() - seconds * 1000);

describe("formats", () => {
  it("says how long ago, and how soon", () => {
    expect(relative(ago(0), now, "en")).toBe("now");
    expect(relative(ago(125), now, "en")).toBe("2 minutes ago");
    expect(relative(ago(-86_400), now, "en")).toBe("in 1 day");
    expect(relative(ago(-47.7 * 3600), now, "en")).toBe("in 2 days");
    expect(relative(ago(3 * 3600), now, "zh")).toBe("3小时前");
  });

  it("says how long", () => {
    expect(duration(640, "en")).toBe("640 ms");
    expect(duration(4321, "en")).toBe("4.3 s");
    expect(duration(125_000, "en")).toBe("2 min 5 s");
    expect(duration(7_200_000, "zh")).toBe("2 小时");
  });

  it("says how much", () => {
    expect(bytes(999)).toBe("999\u00a0B");
    expect(bytes(121_674)).toBe("122\u00a0kB");
    expect(bytes(21_500_000_000)).toBe("21.5\u00a0GB");
    expect(percent(0.937, "en")).toBe("94%");
    expect(percent(0.0042, "en")).toBe("0.4%");
    expect(money(990, "CNY", "en")).toContain("9.90");
  });
});
