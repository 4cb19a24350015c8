import { type QueryKey, useQueryClient } from "@tanstack/react-query";
import { useCallback, useState } from "react";
import { tell, tellError } from "./toast";

/** What is said once it is done: a text, or one made of what came back. */
type Done<T> = string | ((made: T) => string);

interface Acting {
  readonly busy: boolean;
  /** Why the last attempt was refused. */
  readonly error: unknown;
  /** Change something on the server; a refusal is shown in a corner. True if it was done. */
  readonly act: <T>(work: () => Promise<T>, done?: Done<T>) => Promise<boolean>;
  /** The same for a form, which shows the refusal itself: it becomes `error`. */
  readonly attempt: <T>(work: () => Promise<T>, done?: Done<T>) => Promise<boolean>;
}

/** Every change of something on the server: afterwards, done or refused, what the keys name is read again. */
export function useAct(...keys: QueryKey[]): Acting {
  const queries = useQueryClient();
  const [busy, setBusy] = useState(false);
  const [error, setError] = useState<unknown>(null);
  const names = JSON.stringify(keys);
  const run = useCallback(
    async <T>(work: () => Promise<T>, done: Done<T> | undefined, refused: (refusal: unknown) => void) => {
      setBusy(true);
      setError(null);
      try {
        const made = await work();
        if (done) tell(typeof done === "string" ? done : done(made));
        return true;
      } catch (refusal) {
        refused(refusal);
        return false;
      } finally {
        setBusy(false);
        for (const key of JSON.parse(names) as QueryKey[]) await queries.invalidateQueries({ queryKey: key });
      }
    },
    [queries, names],
  );
  const act = useCallback(<T>(work: () => Promise<T>, done?: Done<T>) => run(work, done, tellError), [run]);
  const attempt = useCallback(<T>(work: () => Promise<T>, done?: Done<T>) => run(work, done, setError), [run]);
  return { busy, error, act, attempt };
}
