import { type QueryKey, useInfiniteQuery } from "@tanstack/react-query";
import { useMemo } from "react";

export interface Page<T> {
  items: T[];
  next_cursor?: string | null;
}

export interface Listing<T> {
  readonly items: readonly T[];
  readonly isLoading: boolean;
  readonly error: unknown;
  readonly hasMore: boolean;
  readonly isLoadingMore: boolean;
  readonly loadMore: () => void;
  readonly reload: () => void;
}

/** A list of the API, page by page: `fetchPage` asks for the one behind a cursor. */
export function useListing<T>(
  key: QueryKey,
  fetchPage: (cursor: string | undefined) => Promise<Page<T>>,
  options: { refetchInterval?: number | false; enabled?: boolean } = {},
): Listing<T> {
  const query = useInfiniteQuery({
    queryKey: key,
    queryFn: ({ pageParam }) => fetchPage(pageParam),
    initialPageParam: undefined as string | undefined,
    getNextPageParam: (page: Page<T>) => page.next_cursor ?? undefined,
    ...options,
  });
  const items = useMemo(() => query.data?.pages.flatMap((page) => page.items) ?? [], [query.data]);
  return {
    items,
    isLoading: query.isPending,
    error: query.data === undefined ? query.error : null,
    hasMore: query.hasNextPage,
    isLoadingMore: query.isFetchingNextPage,
    loadMore: () => void query.fetchNextPage(),
    reload: () => void query.refetch(),
  };
}
