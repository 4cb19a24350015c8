import type { UseQueryResult } from "@tanstack/react-query";
import type { ReactNode } from "react";
import { Loading } from "./Loading";
import { ProblemAlert } from "./ProblemAlert";

/** The loaded content; before that a placeholder, or the error. */
export function Loaded<T>({
  query,
  lines,
  children,
}: {
  query: UseQueryResult<T>;
  lines?: number;
  children: (found: T) => ReactNode;
}) {
  // Loaded content stays visible when a later reload fails.
  if (query.data !== undefined) return children(query.data);
  if (query.error) return <ProblemAlert error={query.error} onRetry={() => void query.refetch()} />;
  return <Loading lines={lines} />;
}
