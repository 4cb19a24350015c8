import { useQuery } from "@tanstack/react-query";
import { api, data, keys } from "../../api";

/** What plans are called, by their ids. */
export function usePlanNames(): Map<string, string> {
  const query = useQuery({
    queryKey: keys.plans.names,
    queryFn: () => data(api.GET("/v1/admin/plans", { params: { query: { limit: 100 } } })),
    staleTime: 60_000,
  });
  return new Map((query.data?.items ?? []).map((plan) => [plan.id, plan.name]));
}
