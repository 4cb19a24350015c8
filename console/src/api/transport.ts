// How a request is sent: with the session's CSRF token, again after the session was renewed or the server came back,
// and as an ApiError when it was refused. Typed input is never lost.
import { whenBack } from "./connection";
import { credentials } from "./credentials";
import { ApiError, errorOf } from "./problem";

const SAFE = new Set(["GET", "HEAD"]);
const REPEATABLE = new Set(["GET", "HEAD", "PUT", "DELETE"]);
const KEY = "Idempotency-Key";
const MOST_TRIES = 4;

/** `fetch` for the typed client. Answers are successes; everything else is thrown. */
export async function send(request: Request): Promise<Response> {
  if (request.method === "POST" && !request.headers.has(KEY)) request.headers.set(KEY, randomKey());
  for (let attempt = 1; ; attempt += 1) {
    const response = await deliver(request);
    if (response.ok) return response;
    const error = await errorOf(response);
    if (attempt >= MOST_TRIES || !(await mend(error, response, request))) throw error;
  }
}

/** One sending, or as many as it takes while the server is away. */
async function deliver(request: Request): Promise<Response> {
  const repeatable = REPEATABLE.has(request.method) || request.headers.has(KEY);
  for (let attempt = 1; ; attempt += 1) {
    try {
      const response = await fetch(stamped(request));
      // What a proxy says while the server behind it starts.
      const away = [502, 503, 504].includes(response.status) && !isProblem(response);
      if (!away || !repeatable || attempt >= MOST_TRIES) return response;
    } catch (error) {
      if (request.signal.aborted) throw error;
      if (!repeatable || attempt >= MOST_TRIES) throw new ApiError(0, {});
    }
    await Promise.race([whenBack(), aborted(request.signal)]);
  }
}

/** The request with the token of now; a copy, so that it can be sent again. */
function stamped(request: Request): Request {
  const copy = request.clone();
  const token = credentials.csrf();
  if (token !== null && !SAFE.has(request.method)) copy.headers.set("X-CSRF-Token", token);
  return copy;
}

function isProblem(response: Response): boolean {
  return response.headers.get("Content-Type")?.startsWith("application/problem+json") ?? false;
}

/** Do something about a refusal; true if it is worth sending again. */
async function mend(error: ApiError, response: Response, request: Request): Promise<boolean> {
  const path = new URL(request.url).pathname;
  if (error.status === 401 && !path.startsWith("/v1/auth/")) return credentials.renew();
  if (error.code === "csrf_failed") return credentials.refresh();
  if (error.status === 429 && SAFE.has(request.method)) {
    const seconds = Number(response.headers.get("Retry-After") ?? "1");
    await new Promise((wake) => setTimeout(wake, Math.min(seconds, 10) * 1000));
    return true;
  }
  return false;
}

function aborted(signal: AbortSignal): Promise<never> {
  return new Promise((_, fail) => {
    signal.addEventListener("abort", () => fail(signal.reason), { once: true });
  });
}

/** Unlike crypto.randomUUID this works without https, too. */
export function randomKey(): string {
  return Array.from(crypto.getRandomValues(new Uint8Array(16)), (byte) => byte.toString(16).padStart(2, "0")).join("");
}
