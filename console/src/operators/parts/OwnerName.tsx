import { Text } from "@mantine/core";
import { useQueries } from "@tanstack/react-query";
import { useMemo } from "react";
import { api, data, keys } from "../../api";
import { shortId } from "../../components";

const AT_ONCE = 100;

/** The names of users by their ids; asked for in blocks that stay the same while a list grows. */
export function useUserNames(ids: readonly (string | null | undefined)[]): ReadonlyMap<string, string> {
  const wanted = [...new Set(ids.filter((id): id is string => Boolean(id)))];
  const blocks = Array.from({ length: Math.ceil(wanted.length / AT_ONCE) }, (_, index) =>
    wanted.slice(index * AT_ONCE, (index + 1) * AT_ONCE).sort(),
  );
  return useQueries({
    queries: blocks.map((user_id) => ({
      queryKey: keys.userNames(user_id),
      queryFn: async () => (await data(api.GET("/v1/admin/users/names", { params: { query: { user_id } } }))).names,
      staleTime: 300_000, // names change rarely, and each read is audited
    })),
    combine: (results) => {
      const found = new Map<string, string>();
      for (const { data: names } of results)
        for (const [id, name] of Object.entries(names ?? {})) if (name) found.set(id, name);
      return found;
    },
  });
}

/** Whose a row is: by name, or by id until the name is read. */
export function OwnerName({ id, names }: { id: string; names: ReadonlyMap<string, string> }) {
  const name = useMemo(() => names.get(id) ?? shortId(id), [id, names]);
  return (
    <Text size="sm" truncate title={id}>
      {name}
    </Text>
  );
}
