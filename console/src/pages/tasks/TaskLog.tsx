import { Text } from "@mantine/core";
import { useCallback, useEffect, useRef, useState } from "react";
import { api, data, type LogOut } from "../../api";
import { readUpTo } from "../../api/rows";
import { stateTexts } from "../../components";
import { useText, wordFor } from "../../i18n";
import classes from "./TaskLog.module.css";
import { tasksTexts } from "./tasks.texts";

const MOST_LINES = 1000;

/** The log as it grows: what was there, and what the stream brings, each line once. */
export function useLines(taskId: string) {
  const [lines, setLines] = useState<readonly LogOut[]>([]);
  const add = useCallback((line: LogOut) => {
    setLines((before) =>
      before.some((each) => each.id === line.id) ? before : [...before, line].sort((a, b) => a.id - b.id),
    );
  }, []);
  useEffect(() => {
    // A task that is over has no stream: its lines are read.
    void readUpTo(MOST_LINES, (cursor) => {
      const query = { limit: 100, cursor };
      return data(api.GET("/v1/tasks/{task_id}/logs", { params: { path: { task_id: taskId }, query } }));
    }).then(
      (rows) => rows.items.forEach(add),
      () => {},
    );
  }, [taskId, add]);
  return { lines, add };
}

/** What its handler wrote, and how its attempts ended. */
export function TaskLog({ lines }: { lines: readonly LogOut[] }) {
  const t = useText(tasksTexts);
  const end = useRef<HTMLDivElement>(null);
  const count = lines.length;
  // biome-ignore lint/correctness/useExhaustiveDependencies: a new line is what scrolls
  useEffect(() => {
    end.current?.parentElement?.scrollTo({ top: end.current.parentElement.scrollHeight });
  }, [count]);
  if (count === 0) {
    return (
      <Text size="sm" c="dimmed">
        {t("noLogs")}
      </Text>
    );
  }
  return (
    // biome-ignore lint/a11y/noNoninteractiveTabindex: what scrolls must be reachable by keyboard
    <div className={classes.lines} role="log" tabIndex={0} aria-label={t("logs")}>
      {lines.map((line) => (
        <div key={line.id} className={classes.line}>
          <time dateTime={line.created_at}>{new Date(line.created_at).toLocaleTimeString()}</time>
          <span className={classes.kind}>{line.status !== "LOG" && wordFor(stateTexts, line.status)}</span>
          <span>{line.message}</span>
        </div>
      ))}
      <div ref={end} />
    </div>
  );
}
