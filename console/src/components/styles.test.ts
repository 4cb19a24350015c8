import { existsSync, readdirSync, readFileSync } from "node:fs";
import { basename, dirname } from "node:path";
import { expect, it } from "vitest";

const SOURCES = readdirSync("src", { recursive: true, encoding: "utf8" }).filter((name) => name.endsWith(".tsx"));

it("takes no styles from another page", () => {
  // What two of them share is a component, or a style sheet that is named after none.
  const taken = SOURCES.flatMap((name) =>
    [...readFileSync(`src/${name}`, "utf8").matchAll(/from "([^"]+)\.module\.css"/g)]
      .map(([, sheet = ""]) => sheet)
      .filter((sheet) => {
        const owner = `src/${dirname(name)}/${sheet}.tsx`;
        return !sheet.startsWith("./") || (existsSync(owner) && basename(owner) !== basename(name));
      })
      .map((sheet) => `${name} takes ${sheet}`),
  );
  expect(taken).toEqual([]);
});
