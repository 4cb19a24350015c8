import { useCallback, useMemo } from "react";
import { useSearchParams } from "react-router";

type Values<K extends string> = Record<K, string>;

export interface Filters<K extends string> {
  /** What is filtered by now; "" where nothing is. */
  readonly values: Values<K>;
  readonly set: (changes: Partial<Values<K>>) => void;
  readonly clear: () => void;
  /** Whether anything differs from the defaults. */
  readonly active: boolean;
  /** Only what is set, for a request's query. */
  readonly query: Partial<Values<K>>;
}

/** Filters that live in the address, so that they can be shared, and are there again after a reload. */
export function useFilters<K extends string>(defaults: Values<K>): Filters<K> {
  const [params, setParams] = useSearchParams();
  const names = Object.keys(defaults).sort().join(" ");
  const found = names.split(" ").map((name) => params.get(name));
  const known = JSON.stringify([found, defaults]);
  // biome-ignore lint/correctness/useExhaustiveDependencies: `known` stands for both, by value
  const values = useMemo(() => {
    const each = (names.split(" ") as K[]).map((name, index) => [name, found[index] ?? defaults[name]] as const);
    return Object.fromEntries(each) as Values<K>;
  }, [known]);
  const set = useCallback(
    (changes: Partial<Values<K>>) => {
      setParams(
        (before) => {
          const next = new URLSearchParams(before);
          for (const [name, value] of Object.entries(changes) as [K, string | undefined][]) {
            if (value === undefined || value === defaults[name]) next.delete(name);
            else next.set(name, value);
          }
          return next;
        },
        { replace: true },
      );
    },
    [setParams, defaults],
  );
  const clear = useCallback(() => set(defaults), [set, defaults]);
  const query = useMemo(
    () => Object.fromEntries(Object.entries(values).filter(([, value]) => value !== "")) as Partial<Values<K>>,
    [values],
  );
  const active = (Object.keys(defaults) as K[]).some((name) => values[name] !== defaults[name]);
  return { values, set, clear, active, query };
}
