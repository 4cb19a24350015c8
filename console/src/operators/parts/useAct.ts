import { type QueryKey, useQueryClient } from "@tanstack/react-query";
import { useCallback, useState } from "react";
import { tell, tellError } from "../../components";

/** Do something, say that it was done or why not, and look again at what it has changed. */
export function useAct(...keys: QueryKey[]): {
  readonly busy: boolean;
  readonly act: (work: () => Promise<unknown>, done?: string) => Promise<boolean>;
} {
  const queries = useQueryClient();
  const [busy, setBusy] = useState(false);
  const names = JSON.stringify(keys);
  const act = useCallback(
    async (work: () => Promise<unknown>, done?: string) => {
      setBusy(true);
      try {
        await work();
        if (done) tell(done);
        return true;
      } catch (refusal) {
        tellError(refusal);
        return false;
      } finally {
        setBusy(false);
        for (const key of JSON.parse(names) as QueryKey[]) await queries.invalidateQueries({ queryKey: key });
      }
    },
    [queries, names],
  );
  return { busy, act };
}
