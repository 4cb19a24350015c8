import { Button, Code, Group, Text } from "@mantine/core";
import { useCallback, useEffect, useRef, useState } from "react";
import { Link, useNavigate, useParams } from "react-router";
import { api, data, ifMatch, keys, type LogOut, type TaskOut } from "../../api";
import { readUpTo } from "../../api/rows";
import {
  Elapsed,
  Fact,
  Facts,
  IconPhoto,
  IconPlayerStop,
  IconRefresh,
  IconTrash,
  Id,
  IdFact,
  JsonView,
  Loading,
  Page,
  Panel,
  ProblemAlert,
  StateBadge,
  TimeFact,
  useAct,
  useConfirm,
} from "../../components";
import { useText } from "../../i18n";
import { isOver, useLiveTask } from "../../live/task";
import { RemovalBadge } from "../remove/Outcome";
import { failureOf, MEDIA } from "./failure";
import { lastLine } from "./lastLine";
import classes from "./TaskPage.module.css";
import { Timeline } from "./Timeline";
import { tasksTexts } from "./tasks.texts";
import { WhyItWaits } from "./WhyItWaits";

const MOST_LINES = 1000;

export default function TaskPage() {
  const { taskId = "" } = useParams();
  return <Task key={taskId} taskId={taskId} />;
}

function Task({ taskId }: { taskId: string }) {
  const t = useText(tasksTexts);
  const { lines, add } = useLines(taskId);
  const task = useLiveTask(taskId, add);
  if (task.error && !task.data) {
    return (
      <Page title={t("task")}>
        <ProblemAlert error={task.error} onRetry={() => void task.refetch()} />
      </Page>
    );
  }
  if (!task.data) return <Loading />;
  const one = task.data;
  const failure = failureOf(one);
  const isStack = failure.startsWith("Traceback");
  return (
    <Page
      title={one.title || one.type}
      text={
        <Group gap="sm">
          {MEDIA.includes(one.type) ? (
            <RemovalBadge
              removal={{ ...one, accept_poor: (one.payload as { accept_poor?: boolean } | null)?.accept_poor === true }}
            />
          ) : (
            <StateBadge state={one.status} />
          )}
          <Id id={one.id} />
        </Group>
      }
      actions={<Actions task={one} />}
    >
      {one.error_message && (
        <Panel title={t("failed")}>
          <Text className={classes.error}>{isStack ? lastLine(failure) : failure}</Text>
          {one.error_code && (
            <Text size="sm" c="dimmed" mt={4}>
              <code>{one.error_code}</code>
            </Text>
          )}
          {isStack && (
            <Code block mt="sm" className={classes.stack}>
              {failure}
            </Code>
          )}
        </Panel>
      )}
      {one.status === "QUEUED" && (
        <Panel>
          <WhyItWaits taskId={taskId} />
        </Panel>
      )}
      <Panel title={t("facts")}>
        <Facts>
          <Fact name={t("type")}>
            <code>{one.type}</code>
          </Fact>
          <Fact name={t("queue")}>
            <code>{one.queue}</code>
          </Fact>
          <Fact name={t("attempt")}>{t("attemptOf", { attempt: one.attempt, max: one.max_attempts })}</Fact>
          <Fact name={t("progress")}>{one.progress} %</Fact>
          <TimeFact name={t("created")} at={one.created_at} />
          <TimeFact name={t("started")} at={one.started_at} />
          <TimeFact name={t("finished")} at={one.finished_at} />
          {one.started_at && (
            <Fact name={t("duration")}>
              <Elapsed from={one.started_at} to={one.finished_at} />
            </Fact>
          )}
          {new Date(one.run_at) > new Date(one.created_at) && <TimeFact name={t("runAt")} at={one.run_at} exact />}
          <IdFact name={t("worker")} id={one.worker_id} />
        </Facts>
      </Panel>
      <Panel title={t("timeline")} text={t("timelineText")}>
        <Timeline task={one} />
      </Panel>
      <Panel title={t("logs")}>
        <Lines lines={lines} />
      </Panel>
      <div className={classes.documents}>
        <JsonView label={t("payload")} value={one.payload} />
        {one.result !== null && <JsonView label={t("result")} value={one.result} />}
      </div>
    </Page>
  );
}

/** The log as it grows: what was there, and what the stream brings, each line once. */
function useLines(taskId: string) {
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

function Lines({ lines }: { lines: readonly LogOut[] }) {
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
          <span className={classes.kind}>{line.status}</span>
          <span>{line.message}</span>
        </div>
      ))}
      <div ref={end} />
    </div>
  );
}

function Actions({ task }: { task: TaskOut }) {
  const t = useText(tasksTexts);
  const confirm = useConfirm();
  const navigate = useNavigate();
  const { act } = useAct(keys.tasks.all);
  const { act: leave } = useAct(keys.tasks.ownLists); // what is deleted cannot be read again
  const params = { path: { task_id: task.id }, header: ifMatch(task.version) };
  const cancel = async () => {
    if (!(await confirm({ title: t("cancelTitle"), body: t("cancelText"), action: t("cancel"), danger: true }))) return;
    // Whatever its version is by now: that moves with every step it makes.
    const { path } = params;
    await act(() => api.POST("/v1/tasks/{task_id}/cancel", { params: { path } }), t("canceled"));
  };
  const remove = async () => {
    if (!(await confirm({ title: t("deleteTitle"), body: t("deleteText"), action: t("deleteOne"), danger: true })))
      return;
    await leave(async () => {
      await api.DELETE("/v1/tasks/{task_id}", { params });
      void navigate("/tasks");
    }, t("deleted"));
  };
  const over = isOver(task.status);
  return (
    <Group gap="xs">
      {MEDIA.includes(task.type) && (
        <Button component={Link} to={`/remove/${task.id}`} leftSection={<IconPhoto size={16} />}>
          {t("openRemoval")}
        </Button>
      )}
      {!over && (
        <Button variant="default" leftSection={<IconPlayerStop size={16} />} onClick={() => void cancel()}>
          {t("cancel")}
        </Button>
      )}
      {(task.status === "FAILED" || task.status === "CANCELED") && (
        <Button
          variant="default"
          leftSection={<IconRefresh size={16} />}
          onClick={() => void act(() => api.POST("/v1/tasks/{task_id}/retry", { params }), t("retried"))}
        >
          {t("retry")}
        </Button>
      )}
      {over && (
        <Button variant="default" leftSection={<IconTrash size={16} />} onClick={() => void remove()}>
          {t("deleteOne")}
        </Button>
      )}
    </Group>
  );
}
