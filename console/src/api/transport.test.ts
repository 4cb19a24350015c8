import { afterEach, beforeEach, describe, expect, it, vi } from "vitest";
import { credentials } from "./credentials";
import { send } from "./transport";

const problem = (status: number, code: string) =>
  new Response(JSON.stringify({ code, detail: code, request_id: "req_1" }), {
    status,
    headers: { "Content-Type": "application/problem+json" },
  });

let answers: (() => Response)[];
let sent: { url: string; csrf: string | null; key: string | null; body: string }[];

beforeEach(() => {
  answers = [];
  sent = [];
  vi.stubGlobal("fetch", async (input: Request | string) => {
    if (typeof input === "string") return new Response("{}"); // the probe
    const headers = input.headers;
    sent.push({
      url: input.url,
      csrf: headers.get("X-CSRF-Token"),
      key: headers.get("Idempotency-Key"),
      body: await input.text(),
    });
    const next = answers.shift();
    if (!next) throw new TypeError("network");
    return next();
  });
});

afterEach(() => {
  vi.unstubAllGlobals();
  Object.assign(credentials, { csrf: () => null, renew: async () => false, refresh: async () => false });
});

const post = () => new Request("http://here/v1/things", { method: "POST", body: "typed" });

describe("a request", () => {
  it("is sent again with the new token after a new sign-in, and nothing of it is lost", async () => {
    let token = "old";
    credentials.csrf = () => token;
    credentials.renew = async () => {
      token = "new";
      return true;
    };
    answers = [() => problem(401, "unauthenticated"), () => new Response("{}")];
    await send(post());
    expect(sent.map(({ csrf, body }) => [csrf, body])).toEqual([
      ["old", "typed"],
      ["new", "typed"],
    ]);
    expect(sent[0]?.key).toBe(sent[1]?.key); // and happens once
  });

  it("is thrown with the server's error without a new sign-in", async () => {
    answers = [() => problem(401, "unauthenticated")];
    await expect(send(post())).rejects.toMatchObject({ code: "unauthenticated", requestId: "req_1" });
  });

  it("waits for a server that is away", async () => {
    answers = [
      () => {
        throw new TypeError("network");
      },
      () => new Response("bad gateway", { status: 502 }),
      () => new Response("{}"),
    ];
    await send(post());
    expect(new Set(sent.map(({ key }) => key)).size).toBe(1);
    expect(sent).toHaveLength(3);
  });

  it("asks for the password only once for a wrong one", async () => {
    credentials.renew = vi.fn(async () => true);
    answers = [() => problem(401, "bad_credentials")];
    await expect(send(new Request("http://here/v1/auth/login", { method: "POST" }))).rejects.toMatchObject({
      status: 401,
    });
    expect(credentials.renew).not.toHaveBeenCalled();
  });
});
