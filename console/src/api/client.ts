import createClient from "openapi-fetch";
import type { paths } from "./schema";
import { send } from "./transport";

/** The API, typed by its description: `api.GET("/v1/tasks/{task_id}", { params: { path: { task_id } } })`. */
export const api = createClient<paths>({ baseUrl: "", fetch: send });

/** The body of an answer; refusals were thrown before. */
export async function data<T>(answer: Promise<{ data?: T }>): Promise<T> {
  return (await answer).data as T;
}

/** The header that lets a change happen only to what was seen. */
export function ifMatch(version: number): { "If-Match": string } {
  return { "If-Match": `"${version}"` };
}
