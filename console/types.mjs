// Renders src/api/schema.d.ts from openapi.json: the types by @hey-api/openapi-ts, and which of them each route has.
import { readFileSync, writeFileSync } from "node:fs";
import { createClient } from "@hey-api/openapi-ts";

const OUTPUT = "node_modules/.cache/types";

await createClient({
  input: "openapi.json",
  output: { path: OUTPUT },
  plugins: ["@hey-api/typescript"],
  logs: { level: "silent" },
});
const types = readFileSync(`${OUTPUT}/types.gen.ts`, "utf8");

const routes = Object.entries(JSON.parse(readFileSync("openapi.json", "utf8")).paths).flatMap(([path, methods]) =>
  Object.entries(methods).map(([method, { operationId }]) => {
    const name = operationId.replace(/(?:^|_)([a-z])/g, (_, letter) => letter.toUpperCase());
    if (!types.includes(`export type ${name}Data = `)) throw new Error(`${operationId} has no type ${name}Data`);
    const answer = types.includes(`export type ${name}Response = `) ? `${name}Response` : "unknown";
    return `  ${JSON.stringify(`${method.toUpperCase()} ${path}`)}: { request: ${name}Data; answer: ${answer} };`;
  }),
);
writeFileSync("src/api/schema.d.ts", `${types}\nexport interface Routes {\n${routes.join("\n")}\n}\n`);
