import { Anchor, Button, Drawer, Group, Stack, Text } from "@mantine/core";
import { useQuery } from "@tanstack/react-query";
import { Link } from "react-router";
import { api, data, keys } from "../../api";
import { commonTexts, Fact, Facts, Id, Loading, ProblemAlert, StateBadge, Time, TimeFact } from "../../components";
import { useText } from "../../i18n";
import { useLiveTask } from "../../live/task";
import { lastLine } from "../../pages/tasks/lastLine";
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
          <Button component={Link} to={`/tasks/${taskId}`}>
            {t("panelOpen")}
          </Button>
          <Anchor component={Link} to={`/operators/audit?resource_id=${taskId}&everything=yes`} size="sm">
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
  const { data: task, error } = useLiveTask(taskId);
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
      <Attempts taskId={taskId} />
    </>
  );
}

/** How each attempt ended, and when. */
function Attempts({ taskId }: { taskId: string }) {
  const t = useText(taskTexts);
  const logs = useQuery({
    queryKey: keys.tasks.attempts(taskId),
    queryFn: async () => {
      const params = { path: { task_id: taskId }, query: { limit: 100 } };
      return (await data(api.GET("/v1/tasks/{task_id}/logs", { params }))).items;
    },
  });
  const ends = (logs.data ?? []).filter((line) => line.status !== "LOG");
  if (ends.length === 0) return null;
  return (
    <section>
      <Text fw={600} size="sm" mb={6}>
        {t("attempts")}
      </Text>
      <Stack gap={6}>
        {ends.map((line) => (
          <Group key={line.id} gap="sm" wrap="nowrap" align="flex-start">
            <Text size="sm" w={24} className="figures">
              {line.attempt}
            </Text>
            <StateBadge state={line.status} />
            <div style={{ minWidth: 0, flex: 1 }}>
              <Text size="sm" component="div">
                <Time at={line.created_at} exact />
              </Text>
              {line.message && (
                <Text size="sm" c="dimmed" truncate>
                  {lastLine(line.message)}
                </Text>
              )}
            </div>
          </Group>
        ))}
      </Stack>
    </section>
  );
}
