import type { TaskOut } from "../../api";
import { JsonView } from "../../components";
import { useText } from "../../i18n";
import classes from "./TaskDocuments.module.css";
import { tasksTexts } from "./tasks.texts";

/** What a task was given, and what it gave, as JSON. */
export function TaskDocuments({ task }: { task: TaskOut }) {
  const t = useText(tasksTexts);
  return (
    <div className={classes.documents}>
      <JsonView label={t("payload")} value={task.payload} />
      {task.result !== null && <JsonView label={t("result")} value={task.result} />}
    </div>
  );
}
