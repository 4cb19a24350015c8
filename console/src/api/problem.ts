import type { Problem } from "./schema";

/** An error of the server, or that it could not be reached. */
export class ApiError extends Error {
  readonly status: number;
  readonly code: string;
  readonly problem: Partial<Problem>;

  constructor(status: number, problem: Partial<Problem>) {
    super(problem.detail ?? problem.title ?? `HTTP ${status}`);
    this.name = "ApiError";
    this.status = status;
    this.code = problem.code ?? (status === 0 ? "unreachable" : `http_${status}`);
    this.problem = problem;
  }

  get requestId(): string | null {
    return this.problem.request_id ?? null;
  }

  /** What is wrong with a field of the form that was sent, by the field's name. */
  get fields(): Record<string, string> {
    const found: Record<string, string> = {};
    for (const { field, message } of this.problem.errors ?? []) found[field.replace(/^body\./, "")] = message;
    return found;
  }
}

export async function errorOf(response: Response): Promise<ApiError> {
  let problem: Partial<Problem> = {};
  try {
    problem = (await response.clone().json()) as Partial<Problem>;
  } catch {
    // A proxy's page, or nothing: the status has to do.
  }
  const requestId = response.headers.get("X-Request-Id");
  return new ApiError(response.status, { ...(requestId ? { request_id: requestId } : {}), ...problem });
}

export function isApiError(error: unknown, ...codes: string[]): error is ApiError {
  return error instanceof ApiError && (codes.length === 0 || codes.includes(error.code));
}
