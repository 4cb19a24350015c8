import { useQuery } from "@tanstack/react-query";
import { api, data, keys } from "../api";

/** What this installation offers, and its public configs. */
export function useCapabilities() {
  return useQuery({
    queryKey: keys.capabilities,
    queryFn: () => data(api.GET("/v1/capabilities")),
    staleTime: 300_000,
  });
}
