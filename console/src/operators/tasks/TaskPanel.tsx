import { Anchor, Button, Drawer, Group, Stack, Text } from "@mantine/core";
import { Link } from "react-router";
import { commonTexts, Fact, Facts, Id, Loading, ProblemAlert, StateBadge, TimeFact } from "../../components";
import { useText } from "../../i18n";
import { useLiveTask } from "../../live/task";
import { lastLine } from "../../pages/tasks/lastLine";
import { useLines } from "../../pages/tasks/TaskLog";
import { Timeline } from "../../pages/tasks/Timeline";
import { auditOf } from "../parts/AuditList";
import { OwnerName, useUserNames } from "../parts/OwnerName";
import { partTexts } from "../parts/parts.texts";
import { taskTexts } from "./tasks.texts";

/** One task beside the list: whose it is, who works on it, its attempts in time, and what was done to it. */
export function TaskPanel({ taskId, onClose }: { taskId: string; onClose: () => void }) {
  const t = useText(taskTexts);
  const common = useText(commonTexts);
  return (
    <Drawer
      opened
      onClose={onClose}
      position="right"
      size="lg"
      title={<Id id={taskId} full />}
      closeButtonProps={{ "aria-label": common("close") }}
    >
      <Stack>
        <Summary key={taskId} taskId={taskId} />
        <Group>
          <Button component={Link} to={`/operators/tasks/${taskId}`}>
            {t("panelOpen")}
          </Button>
          <Anchor component={Link} to={auditOf({ resource_id: taskId })} size="sm">
            {t("audited")}
          </Anchor>
        </Group>
      </Stack>
    </Drawer>
  );
}

function Summary({ taskId }: { taskId: string }) {
  const t = useText(taskTexts);
  const part = useText(partTexts);
  const { lines, add } = useLines(taskId);
  const { data: task, error } = useLiveTask(taskId, add);
  const names = useUserNames([task?.user_id]);
  if (error) return <ProblemAlert error={error} />;
  if (!task) return <Loading />;
  return (
    <>
      <Text fw={600}>{task.title || task.type}</Text>
      <Facts>
        <Fact name={part("state")}>
          <StateBadge state={task.status} />
        </Fact>
        <Fact name={part("ownedBy")}>
          <Link to={`/operators/users/${task.user_id}`}>
            <OwnerName id={task.user_id} names={names} />
          </Link>
        </Fact>
        <Fact name={part("type")}>{task.type}</Fact>
        <Fact name={part("queue")}>{task.queue}</Fact>
        <TimeFact name={part("created")} at={task.created_at} exact />
        <Fact name={t("attempt")}>
          {task.attempt} / {task.max_attempts}
        </Fact>
      </Facts>
      {task.error_message && (
        <Text size="sm" c="var(--bad-ink)" style={{ overflowWrap: "anywhere" }}>
          {lastLine(task.error_message)}
        </Text>
      )}
      <section>
        <Text fw={600} size="sm" mb={6}>
          {t("attempts")}
        </Text>
        <Timeline task={task} lines={lines} />
      </section>
    </>
  );
}
