import type { Routes } from "./schema";
import { send } from "./transport";

type Method = "GET" | "POST" | "PUT" | "PATCH" | "DELETE";
/** The paths that have this method. */
type PathOf<M extends Method> = { [R in keyof Routes]: R extends `${M} ${infer P}` ? P : never }[keyof Routes];
type RouteOf<M extends Method, P extends PathOf<M>> = Routes[`${M} ${P}` & keyof Routes];

/** A field that the description may leave out, or require. */
type Part<Request, Name extends string, As extends string = Name> = Request extends { [N in Name]: infer Value }
  ? { [N in As]: Value }
  : Request extends { [N in Name]?: infer Value }
    ? { [N in As]?: Value }
    : unknown;
type Params<Request> = Part<Request, "path"> & Part<Request, "query"> & Part<Request, "headers", "header">;
type Options<Request> = Part<Request, "body"> &
  (Record<never, never> extends Params<Request> ? { params?: Params<Request> } : { params: Params<Request> }) & {
    headers?: Record<string, string>;
    signal?: AbortSignal;
  };
type Arguments<Request> =
  Record<never, never> extends Options<Request> ? [options?: Options<Request>] : [options: Options<Request>];

interface Answer<T> {
  readonly data: T;
  readonly response: Response;
}

interface AnyOptions {
  params?: { path?: object; query?: object; header?: object };
  headers?: Record<string, string>;
  body?: unknown;
  signal?: AbortSignal;
}

function caller<M extends Method>(method: M) {
  return async <P extends PathOf<M>>(
    path: P,
    ...[options]: Arguments<RouteOf<M, P>["request"]>
  ): Promise<Answer<RouteOf<M, P>["answer"]>> => {
    const response = await send(requestOf(method, path, (options ?? {}) as AnyOptions));
    const text = await response.text();
    return { data: (text === "" ? undefined : JSON.parse(text)) as RouteOf<M, P>["answer"], response };
  };
}

/** The API, typed by its description: `api.GET("/v1/tasks/{task_id}", { params: { path: { task_id } } })`. */
export const api = {
  GET: caller("GET"),
  POST: caller("POST"),
  PUT: caller("PUT"),
  PATCH: caller("PATCH"),
  DELETE: caller("DELETE"),
};

/** The request of a route: names in its path are replaced, and values that are null or undefined are left out. */
export function requestOf(method: Method, path: string, { params = {}, headers, body, signal }: AnyOptions): Request {
  const inPath = new Map(Object.entries(params.path ?? {}));
  const filled = path.replace(/\{(\w+)\}/g, (_, name) => encodeURIComponent(String(inPath.get(name))));
  const query = new URLSearchParams();
  for (const [name, value] of Object.entries(params.query ?? {})) {
    for (const each of Array.isArray(value) ? value : [value]) if (each != null) query.append(name, String(each));
  }
  return new Request(`${location.origin}${filled}${query.size ? `?${query}` : ""}`, {
    method,
    headers: { ...(body === undefined ? {} : { "Content-Type": "application/json" }), ...params.header, ...headers },
    body: body === undefined ? null : JSON.stringify(body),
    signal: signal ?? null,
  });
}

/** The body of an answer; refusals were thrown before. */
export async function data<T>(answer: Promise<{ data: T }>): Promise<T> {
  return (await answer).data;
}

/** The header that lets a change happen only to what was seen. */
export function ifMatch(version: number): { "If-Match": string } {
  return { "If-Match": `"${version}"` };
}
