import { type QueryKey, useQuery, useQueryClient } from "@tanstack/react-query";
import { useCallback, useRef, useState } from "react";
import { append, type Page, type Rows, reread } from "./rows";

export type { Page } from "./rows";

export interface Listing<T> {
  readonly items: readonly T[];
  readonly isLoading: boolean;
  readonly error: unknown;
  readonly hasMore: boolean;
  readonly isLoadingMore: boolean;
  /** Why the next page did not come. */
  readonly moreError: unknown;
  readonly loadMore: () => void;
  readonly reload: () => void;
  /** Newer rows have come than this list begins with: `reload` shows them. */
  readonly isBehind: boolean;
}

const NONE: readonly never[] = [];

/** A list of the API, page by page: `fetchPage` asks for the one behind a cursor. */
export function useListing<T>(
  key: QueryKey,
  fetchPage: (cursor: string | undefined) => Promise<Page<T>>,
  options: { refetchInterval?: number | false | (() => number | false); enabled?: boolean } = {},
): Listing<T> {
  const queries = useQueryClient();
  const query = useQuery({
    queryKey: key,
    queryFn: () => reread(queries.getQueryData<Rows<T>>(key), fetchPage),
    ...options,
  });
  const [moreError, setMoreError] = useState<unknown>(null);
  const [loading, setLoading] = useState<string | null>(null);
  const busy = useRef<string | null>(null);
  const latest = useRef({ key, fetchPage });
  latest.current = { key, fetchPage };
  const next = query.data?.next ?? null;

  const loadMore = useCallback(async () => {
    if (next === null || busy.current === next) return;
    const asked = latest.current;
    busy.current = next;
    setLoading(next);
    setMoreError(null);
    try {
      const page = await asked.fetchPage(next);
      queries.setQueryData<Rows<T>>(asked.key, (now) => (now?.next === next ? append(now, page) : now));
    } catch (refusal) {
      setMoreError(refusal);
    } finally {
      busy.current = null;
      setLoading(null);
    }
  }, [next, queries]);

  const { refetch } = query;
  const reload = useCallback(() => {
    setMoreError(null);
    queries.setQueryData<Rows<T>>(latest.current.key, (now) => now && { ...now, pages: 1 });
    void refetch();
  }, [queries, refetch]);

  return {
    items: query.data?.items ?? NONE,
    isLoading: query.isPending,
    error: query.data === undefined ? query.error : null,
    hasMore: next !== null,
    isLoadingMore: loading !== null && loading === next,
    moreError,
    loadMore,
    reload,
    isBehind: query.data?.behind ?? false,
  };
}
