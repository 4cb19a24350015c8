import { useQueries, useQuery } from "@tanstack/react-query";
import { api, data, keys, type RemovalItemOut } from "../../api";
import { isOver } from "../../live/task";
import { ASKS, asUploaded } from "./batch";
import { successorQuery } from "./successor";

const MOST = 100;
const MOST_ASKING = 20; // of which a later order is looked for

/** What was ordered together: one batch, or several removals by their ids. */
async function read(name: string): Promise<RemovalItemOut[]> {
  if (name.startsWith("bat_")) {
    return (await data(api.GET("/v1/removals", { params: { query: { batch_id: name, limit: MOST } } }))).items;
  }
  const one = (id: string) => data(api.GET("/v1/removals/{task_id}", { params: { path: { task_id: id } } }));
  return Promise.all(name.split(",").slice(0, MOST).map(one));
}

/** The files of a batch in the order of the upload. One that was ordered again with success stands for the first try. */
export function useBatch(name: string) {
  const removals = useQuery({
    queryKey: keys.removals.batch(name),
    queryFn: () => read(name),
    refetchInterval: (query) => (query.state.data?.some((each) => !isOver(each.status)) ? 1500 : false),
  });
  const first = asUploaded(removals.data ?? []);
  const failed = first.filter((each) => each.status === "FAILED").slice(0, MOST_ASKING);
  const successors = useQueries({ queries: failed.map(successorQuery) });
  const later = new Map(failed.map((each, index) => [each.id, successors[index]?.data ?? null]));
  const items = first.map((each) => later.get(each.id) ?? each);
  const asking = items.filter((each) => each.status === "FAILED" && ASKS.includes(each.error_code ?? ""));
  return { removals, items, asking };
}
