import { type UseQueryOptions, useQuery } from "@tanstack/react-query";
import { api, data, keys, type RemovalItemOut } from "../../api";

type Ordered = Pick<RemovalItemOut, "id" | "asset_id" | "created_at">;

const MOST = 100;

/** A later order of the same file that has succeeded; null if there is none. */
export function successorOf(removal: Ordered, others: readonly RemovalItemOut[]): RemovalItemOut | null {
  return (
    others.find(
      (each) =>
        each.asset_id === removal.asset_id && each.status === "SUCCEEDED" && each.created_at > removal.created_at,
    ) ?? null
  );
}

export function successorQuery(removal: Ordered): UseQueryOptions<RemovalItemOut | null> {
  return {
    queryKey: keys.removals.successor(removal.id),
    queryFn: async () => {
      const query = { asset_id: removal.asset_id, limit: MOST };
      return successorOf(removal, (await data(api.GET("/v1/removals", { params: { query } }))).items);
    },
  };
}

export function useSuccessor(removal: Ordered) {
  return useQuery(successorQuery(removal));
}
