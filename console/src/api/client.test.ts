import { afterEach, beforeEach, describe, expect, it, vi } from "vitest";
import { api, data, requestOf } from "./client";

beforeEach(() => {
  vi.stubGlobal("location", { origin: "http://here" });
});

afterEach(() => {
  vi.unstubAllGlobals();
});

describe("a request", () => {
  it("has its path's names encoded and its query without empty values", () => {
    const params = { path: { name: "a/b c" }, query: { status: ["QUEUED", "RUNNING"], user_id: undefined, limit: 0 } };
    const { url, method } = requestOf("GET", "/v1/queues/{name}", { params });
    expect([method, url]).toEqual(["GET", "http://here/v1/queues/a%2Fb%20c?status=QUEUED&status=RUNNING&limit=0"]);
  });

  it("sends its body as JSON, with the headers of both kinds", async () => {
    const request = requestOf("PUT", "/v1/x", {
      params: { header: { "If-Match": '"1"' } },
      headers: { "Idempotency-Key": "k" },
      body: { max_running: null },
    });
    expect(await request.json()).toEqual({ max_running: null });
    expect([...request.headers]).toEqual([
      ["content-type", "application/json"],
      ["idempotency-key", "k"],
      ["if-match", '"1"'],
    ]);
  });

  it("without a body says nothing of one", () => {
    expect(requestOf("POST", "/v1/x", {}).headers.has("Content-Type")).toBe(false);
  });
});

describe("an answer", () => {
  it("is its JSON, or nothing where there is none", async () => {
    const answers = [Response.json({ items: [] }), new Response(null, { status: 204 })];
    vi.stubGlobal("fetch", async () => answers.shift());
    expect(await data(api.GET("/v1/queues"))).toEqual({ items: [] });
    expect(await data(api.POST("/v1/auth/logout"))).toBeUndefined();
  });
});

it("takes only what the route takes", () => {
  // Never called: the compiler checks these.
  const wrong = () => [
    // @ts-expect-error There is no such path.
    api.GET("/v1/nothing"),
    // @ts-expect-error The path has a name.
    api.GET("/v1/tasks/{task_id}"),
    // @ts-expect-error There is no such parameter.
    api.GET("/v1/tasks", { params: { query: { colour: "red" } } }),
    // @ts-expect-error The body is missing.
    api.POST("/v1/tasks"),
    // @ts-expect-error There is no such method.
    api.PUT("/v1/tasks", { body: {} }),
  ];
  expect(wrong).toBeTypeOf("function");
});
