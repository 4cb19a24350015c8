import { Group } from "@mantine/core";
import type { ReactNode } from "react";
import { useParams } from "react-router";
import type { TaskOut } from "../../api";
import { Elapsed, Fact, Id, Loading, Page, Panel, ProblemAlert, StateBadge, TimeFact } from "../../components";
import { useText } from "../../i18n";
import { isOver, useLiveTask } from "../../live/task";
import { RemovalBadge } from "../remove/Outcome";
import { MEDIA } from "./failure";
import { TaskActions } from "./TaskActions";
import { TaskDocuments } from "./TaskDocuments";
import { TaskFailure } from "./TaskFailure";
import { TaskLog, useLines } from "./TaskLog";
import { Timeline } from "./Timeline";
import { tasksTexts } from "./tasks.texts";
import { WhyItWaits } from "./WhyItWaits";

interface Props {
  /** The list that it is part of. */
  readonly list: string;
  /** Shown in place of the page, for tasks that have another one. */
  readonly elsewhere?: (task: TaskOut) => ReactNode;
  /** Facts of this reader, and panels between the log and the documents. */
  readonly facts: (task: TaskOut) => ReactNode;
  readonly more?: (task: TaskOut) => ReactNode;
}

/** One task as it runs, as its owner and operators see it. */
export function TaskFrame(props: Props) {
  const { taskId = "" } = useParams();
  return <Task key={taskId} taskId={taskId} {...props} />;
}

function Task({ taskId, list, elsewhere, facts, more }: Props & { taskId: string }) {
  const t = useText(tasksTexts);
  const { lines, add } = useLines(taskId);
  const { data: task, error, refetch } = useLiveTask(taskId, add);
  if (error && !task) {
    return (
      <Page title={t("task")}>
        <ProblemAlert error={error} onRetry={() => void refetch()} />
      </Page>
    );
  }
  if (!task) return <Loading />;
  const other = elsewhere?.(task);
  if (other) return other;
  return (
    <Page
      title={task.title || task.type}
      text={
        <Group gap="sm">
          <TaskBadge task={task} />
          <Id id={task.id} />
        </Group>
      }
      actions={<TaskActions task={task} list={list} />}
    >
      <TaskFailure task={task} />
      {task.status === "QUEUED" && (
        <Panel>
          <WhyItWaits taskId={taskId} />
        </Panel>
      )}
      <Panel title={t("facts")}>{facts(task)}</Panel>
      <Panel title={t("timeline")} text={t("timelineText")}>
        <Timeline task={task} lines={lines} />
      </Panel>
      <Panel title={t("logs")}>
        <TaskLog lines={lines} />
      </Panel>
      {more?.(task)}
      <TaskDocuments task={task} />
    </Page>
  );
}

/** The state of a task; of a removal in the words of its own page. */
export function TaskBadge({ task }: { task: TaskOut }) {
  if (!MEDIA.includes(task.type)) return <StateBadge state={task.status} />;
  const { accept_poor = false } = (task.payload ?? {}) as { accept_poor?: boolean };
  return <RemovalBadge removal={{ ...task, accept_poor }} />;
}

/** What everybody may know of when it ran, and how often. */
export function RunFacts({ task }: { task: TaskOut }) {
  const t = useText(tasksTexts);
  return (
    <>
      <Fact name={t("attempt")}>{t("attemptOf", { attempt: task.attempt, max: task.max_attempts })}</Fact>
      <Fact name={t("progress")}>{task.progress} %</Fact>
      <TimeFact name={t("created")} at={task.created_at} />
      <TimeFact name={t("started")} at={task.started_at} />
      <TimeFact name={t("finished")} at={task.finished_at} />
      {task.started_at && (
        <Fact name={t("duration")}>
          <Elapsed from={task.started_at} to={task.finished_at} />
        </Fact>
      )}
      {!isOver(task.status) && new Date(task.run_at) > new Date(task.created_at) && (
        <TimeFact name={t("runAt")} at={task.run_at} exact />
      )}
    </>
  );
}
