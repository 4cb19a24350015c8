import { useQuery, useQueryClient } from "@tanstack/react-query";
import { useEffect } from "react";
import { api, data, keys } from "../api";
import { useMe } from "../session/store";
import { follow } from "./useEvents";

/** How many notifications are unread, as it changes. */
export function useUnread(): number {
  const query = useQuery({
    queryKey: keys.notifications.unread,
    queryFn: () => data(api.GET("/v1/notifications/unread-count")),
    staleTime: 30_000,
  });
  return query.data?.unread ?? 0;
}

/** Take note of notifications as they come; once for the whole page. */
export function useNotificationStream(): void {
  const { user } = useMe();
  const queries = useQueryClient();
  // biome-ignore lint/correctness/useExhaustiveDependencies: another person has another stream
  useEffect(() => {
    const news = () => {
      void queries.invalidateQueries({ queryKey: keys.notifications.all });
      // Notifications report changes of tasks or plans.
      void queries.invalidateQueries({ queryKey: keys.tasks.all });
      void queries.invalidateQueries({ queryKey: keys.usage.all });
    };
    return follow("/v1/notifications/events", ["notification", "unread"], news);
  }, [user.id, queries]);
}

const LOOKED_AT = 50;

/** Who sees the result of tasks, or of their batch, has read its notification, also one that comes later. */
export function useReadWith(tasks: readonly string[], batch: string | null | undefined, seen: boolean): void {
  const queries = useQueryClient();
  const unread = useQuery({
    queryKey: keys.notifications.about(tasks, batch),
    queryFn: async () => {
      const query = { unread: true, limit: LOOKED_AT };
      const { items } = await data(api.GET("/v1/notifications", { params: { query } }));
      return items.filter(({ payload }) => {
        const { task_id, batch_id } = (payload ?? {}) as { task_id?: string; batch_id?: string };
        return (task_id && tasks.includes(task_id)) || (batch && batch_id === batch);
      });
    },
    enabled: seen,
  }).data;
  useEffect(() => {
    if (!unread?.length) return;
    const read = ({ id }: { id: number }) =>
      api.POST("/v1/notifications/{notification_id}/read", { params: { path: { notification_id: String(id) } } });
    void Promise.all(unread.map(read))
      .then(() => queries.invalidateQueries({ queryKey: keys.notifications.all }))
      .catch(() => {}); // it stays unread
  }, [unread, queries]);
}
