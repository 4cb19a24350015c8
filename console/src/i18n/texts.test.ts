import { describe, expect, it } from "vitest";
import { fill } from "./texts";

type Dictionary = { en: Record<string, string>; zh: Record<string, string> };

// Every dictionary, also new ones.
const modules = import.meta.glob<Record<string, Dictionary>>("../**/*.texts.ts", { eager: true });
const dictionaries = Object.entries(modules).flatMap(([file, module]) =>
  Object.entries(module).map(([name, dictionary]) => [`${file} ${name}`, dictionary] as const),
);
const placeholders = (text: string) => [...text.matchAll(/\{(\w+)/g)].map((match) => match[1]).sort();

describe.each(dictionaries)("%s", (_, { en, zh }) => {
  it("has the same keys in both languages", () => {
    expect(Object.keys(zh).sort()).toEqual(Object.keys(en).sort());
  });

  it.each(Object.keys(en))("%s has the same placeholders, and is not left in English", (key) => {
    const [there, here] = [en[key] ?? "", zh[key] ?? ""];
    expect(new Set(placeholders(here))).toEqual(new Set(placeholders(there)));
    expect(here.trim()).not.toBe("");
    // Names and units are the same in both; a sentence is not.
    if (/[a-z]{3,} [a-z]{2,} [a-z]{2,}/.test(there)) expect(here).toMatch(/[\u4e00-\u9fff]/);
  });
});

it("finds the dictionaries", () => {
  expect(dictionaries.length).toBeGreaterThan(4);
});

describe("fill", () => {
  it("puts values in, and chooses by number", () => {
    expect(fill("{n} {n:file|files} of {name}", { n: 1, name: "Ada" })).toBe("1 file of Ada");
    expect(fill("{n} {n:file|files} of {name}", { n: 3, name: "Ada" })).toBe("3 files of Ada");
  });

  it("does not read placeholders out of values", () => {
    expect(fill("{a} {b}", { a: "{b}", b: "x" })).toBe("{b} x");
  });
});
