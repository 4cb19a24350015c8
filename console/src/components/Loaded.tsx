import type { UseQueryResult } from "@tanstack/react-query";
import type { ReactNode } from "react";
import { Loading } from "./Loading";
import { ProblemAlert } from "./ProblemAlert";

/** What was asked for once it is there; what stands in its place until then, or says why it does not come. */
export function Loaded<T>({
  query,
  lines,
  children,
}: {
  query: UseQueryResult<T>;
  lines?: number;
  children: (found: T) => ReactNode;
}) {
  // What is there stays in sight when a later look fails.
  if (query.data !== undefined) return children(query.data);
  if (query.error) return <ProblemAlert error={query.error} onRetry={() => void query.refetch()} />;
  return <Loading {...(lines ? { lines } : {})} />;
}
