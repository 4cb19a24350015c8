import { keepPreviousData, type UseQueryResult, useQuery, useQueryClient } from "@tanstack/react-query";
import { useState } from "react";
import { api, data, keys, type LogOut, type TaskItemOut, type TaskOut, type TaskStatus } from "../api";
import { readUpTo } from "../api/rows";
import { useEvents } from "./useEvents";

const OVER: readonly TaskStatus[] = ["SUCCEEDED", "FAILED", "CANCELED"];

export function isOver(status: TaskStatus): boolean {
  return OVER.includes(status);
}

/** A task as it changes, until it is over. */
export function useLiveTask(taskId: string, onLog?: (line: LogOut) => void): UseQueryResult<TaskOut> {
  const queries = useQueryClient();
  const key = keys.tasks.one(taskId);
  const query = useQuery({
    queryKey: key,
    queryFn: () => data(api.GET("/v1/tasks/{task_id}", { params: { path: { task_id: taskId } } })),
  });
  const open = query.data !== undefined && !isOver(query.data.status);
  // All log lines only where they are shown.
  const [url] = useState(() => `/v1/tasks/${encodeURIComponent(taskId)}/events${onLog ? "?after_log=0" : ""}`);
  const ended = () => {
    // The result came with the end, and money was settled.
    for (const each of [keys.tasks.all, keys.removals.all, keys.usage.all])
      void queries.invalidateQueries({ queryKey: each });
  };
  useEvents(open ? url : null, {
    task: (event) => {
      const item = event as TaskItemOut;
      queries.setQueryData<TaskOut>(key, (before) => (before ? { ...before, ...item } : before));
      void queries.invalidateQueries({ queryKey: keys.tasks.allSteps(taskId) });
      // What is over is listened to no longer: the event that says so may come too late.
      if (isOver(item.status)) ended();
    },
    log: (event) => onLog?.(event as LogOut),
    end: ended,
  });
  return query;
}

const MOST_STEPS = 500;

/** The steps of a task, up to a limit; of a longer history also the failed ones. */
export function useSteps(taskId: string, onlyFailed: boolean) {
  return useQuery({
    queryKey: keys.tasks.steps(taskId, onlyFailed),
    queryFn: () =>
      readUpTo(MOST_STEPS, (cursor) => {
        const query = { limit: 100, failed: onlyFailed || undefined, cursor };
        return data(api.GET("/v1/tasks/{task_id}/steps", { params: { path: { task_id: taskId }, query } }));
      }),
    placeholderData: keepPreviousData,
  });
}
