import { readdirSync, readFileSync } from "node:fs";
import { expect, it } from "vitest";
import { keys } from "./keys";

const SOURCES = readdirSync("src", { recursive: true, encoding: "utf8" }).filter(
  (name) => /\.tsx?$/.test(name) && !/\.test\.tsx?$|\.d\.ts$/.test(name) && name !== "api/keys.ts",
);

it("is the only place where a key is written", () => {
  // Two pages that write the same key for two shapes of data break each other.
  const literal = /queryKey: \[|(?:useListing<\w+>|useAct|[sg]etQueryData(?:<\w+>)?)\(\s*\[|changes=\{\[/;
  expect(SOURCES.filter((name) => literal.test(readFileSync(`src/${name}`, "utf8")))).toEqual([]);
});

it("has no key twice", () => {
  const made = Object.values(keys).flatMap((group): unknown[][] => {
    const members = typeof group === "function" || Array.isArray(group) ? [group] : Object.values(group);
    return members.map((key) =>
      typeof key === "function" ? (key as (...args: string[]) => unknown[])("1", "2") : key,
    );
  });
  const written = made.map((key) => JSON.stringify(key));
  expect(written.filter((key, at) => written.indexOf(key) !== at)).toEqual([]);
});

it("begins every key of a group as the group begins", () => {
  for (const group of Object.values(keys)) {
    if (typeof group === "function" || !("all" in group)) continue;
    for (const key of Object.values(group)) {
      const made = typeof key === "function" ? (key as (...args: unknown[]) => unknown[])() : key;
      expect(made[0]).toBe(group.all[0]);
    }
  }
});
