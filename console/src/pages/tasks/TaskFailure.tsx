import { Code, Text } from "@mantine/core";
import type { TaskOut } from "../../api";
import { Panel } from "../../components";
import { useText } from "../../i18n";
import { failureOf } from "./failure";
import { lastLine } from "./lastLine";
import classes from "./TaskFailure.module.css";
import { tasksTexts } from "./tasks.texts";

/** Why a task failed: the error, and where in the program it was raised. */
export function TaskFailure({ task }: { task: TaskOut }) {
  const t = useText(tasksTexts);
  if (!task.error_message) return null;
  const failure = failureOf(task);
  const isStack = failure.startsWith("Traceback");
  return (
    <Panel title={t("failed")}>
      <Text className={classes.error}>{isStack ? lastLine(failure) : failure}</Text>
      {task.error_code && (
        <Text size="sm" c="dimmed" mt={4}>
          <code>{task.error_code}</code>
        </Text>
      )}
      {isStack && (
        <Code block mt="sm" className={classes.stack}>
          {failure}
        </Code>
      )}
    </Panel>
  );
}
