import type { EndpointOut } from "../../api";

/** The state of an endpoint that people read: an active one that only fails is failing, and not well. */
export function healthOf(endpoint: Pick<EndpointOut, "status" | "failing_since">): string {
  return endpoint.status === "ACTIVE" && endpoint.failing_since !== null ? "FAILING" : endpoint.status;
}
