import { useQuery } from "@tanstack/react-query";
import { api, data, keys } from "../api";

/** The registered task types. */
export function useTaskTypes() {
  return useQuery({
    queryKey: keys.taskTypes,
    queryFn: async () => (await data(api.GET("/v1/task-types"))).items,
    staleTime: 60_000,
  });
}
