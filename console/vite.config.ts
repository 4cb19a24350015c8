import { env } from "node:process";
import { defineConfig } from "vite";

const api = env.HEADRACE_API_URL ?? "http://127.0.0.1:8080";

const proxy = Object.fromEntries(
  ["/v1", "/docs", "/openapi.json", "/healthz", "/readyz", "/metrics"].map((path) => [path, api]),
);

export default defineConfig({
  // JSX is understood as it is; React's fast refresh would be one more dependency.
  oxc: { jsx: { runtime: "automatic" } },
  build: {
    target: "es2022",
    // A data: URL would have to be allowed for fonts and styles; a file is served by us.
    assetsInlineLimit: 0,
    modulePreload: { polyfill: false },
    reportCompressedSize: false,
    chunkSizeWarningLimit: 700,
    rolldownOptions: {
      onLog: (level, log, tell) => {
        // "use client" means something to servers that render; there is none.
        if (log.code !== "MODULE_LEVEL_DIRECTIVE") tell(level, log);
      },
    },
  },
  server: { proxy },
  preview: { proxy },
});
