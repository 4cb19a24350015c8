import { Anchor } from "@mantine/core";
import { Link } from "react-router";
import type { TaskOut } from "../../api";
import { Fact, Facts, IdFact, Panel, shortId } from "../../components";
import { useText } from "../../i18n";
import { RunFacts, TaskFrame } from "../../pages/tasks/TaskFrame";
import { AuditList, auditOf } from "../parts/AuditList";
import { labelLines } from "../parts/labels";
import { OwnerName, useUserNames } from "../parts/OwnerName";
import { partTexts } from "../parts/parts.texts";
import { taskTexts } from "./tasks.texts";

/** Anybody's task, with what operators ask of it: whose it is, who works on it, and what was done to it. */
export default function TaskPage() {
  const t = useText(taskTexts);
  return (
    <TaskFrame
      list="/operators/tasks"
      facts={(task) => <TaskFacts task={task} />}
      more={({ id }) => (
        <Panel
          title={t("audited")}
          actions={
            <Anchor component={Link} to={auditOf({ resource_id: id })} size="sm">
              {t("auditAll")}
            </Anchor>
          }
        >
          <AuditList filter={{ resource_id: id }} />
        </Panel>
      )}
    />
  );
}

function TaskFacts({ task }: { task: TaskOut }) {
  const t = useText(taskTexts);
  const part = useText(partTexts);
  const names = useUserNames([task.user_id]);
  const labels = labelLines(task.labels);
  return (
    <Facts>
      <Fact name={part("ownedBy")}>
        <Anchor component={Link} to={`/operators/users/${task.user_id}`} size="sm">
          <OwnerName id={task.user_id} names={names} />
        </Anchor>
      </Fact>
      <Fact name={part("type")}>
        <code>{task.type}</code>
      </Fact>
      <Fact name={part("queue")}>
        <Anchor component={Link} to={`/operators/queues?queue=${encodeURIComponent(task.queue)}`} size="sm">
          {task.queue}
        </Anchor>
      </Fact>
      {task.worker_id && (
        <Fact name={t("worker")}>
          <Anchor component={Link} to="/operators/workers" size="sm" title={task.worker_id}>
            {shortId(task.worker_id)}
          </Anchor>
        </Fact>
      )}
      <RunFacts task={task} />
      <Fact name={t("priority")}>{task.priority}</Fact>
      {task.timeout_seconds !== null && <Fact name={t("timeout")}>{t("seconds", { n: task.timeout_seconds })}</Fact>}
      {task.limit_key && (
        <Fact name={t("limitKey")}>
          <code>{task.limit_key}</code>
        </Fact>
      )}
      {labels.length > 0 && (
        <Fact name={t("labels")}>
          <code>{labels.join(", ")}</code>
        </Fact>
      )}
      {task.schedule_id && (
        <Fact name={t("schedule")}>
          <Anchor component={Link} to={`/operators/schedules/${task.schedule_id}`} size="sm">
            {shortId(task.schedule_id)}
          </Anchor>
        </Fact>
      )}
      <IdFact name={t("trace")} id={task.trace_id} />
    </Facts>
  );
}
