import { expect, it } from "vitest";
import { announcementOf, contactOf, quotaLevelOf } from "./notices";

const NOW = Date.parse("2026-11-19T12:00:00Z");

it("shows an announcement until its end", () => {
  const text = "Maintenance tonight";
  expect(announcementOf({ announcement: { text } }, NOW)).toEqual({ text, level: "info" });
  const critical = { text, level: "critical", until: "2026-11-19T13:00:00Z" };
  expect(announcementOf({ announcement: critical }, NOW)).toEqual({ text, level: "critical" });
  expect(announcementOf({ announcement: { ...critical, until: "2026-11-19T11:00:00Z" } }, NOW)).toBeNull();
  expect(announcementOf({ announcement: null }, NOW)).toBeNull();
  expect(announcementOf(undefined, NOW)).toBeNull();
});

it("shows a contact that can be reached", () => {
  expect(contactOf({ contact: { email: "help@example.com", url: null } })).toEqual({
    email: "help@example.com",
    url: null,
  });
  expect(contactOf({ contact: { email: null, url: "javascript:alert(1)" } })).toBeNull();
  expect(contactOf({ contact: {} })).toBeNull();
});

it("warns of a quota at 80 and at 100 percent", () => {
  expect(quotaLevelOf({ left: 21, total: 100 })).toBeNull();
  expect(quotaLevelOf({ left: 20, total: 100 })).toBe(80);
  expect(quotaLevelOf({ left: 0, total: 100 })).toBe(100);
  expect(quotaLevelOf({ left: 0, total: 0 })).toBeNull();
});
