import { Navigate } from "react-router";
import { Fact, Facts } from "../../components";
import { useText } from "../../i18n";
import { MEDIA } from "./failure";
import { RunFacts, TaskFrame } from "./TaskFrame";
import { tasksTexts } from "./tasks.texts";

/** A task of the reader's own; a file has its result as its page. */
export default function TaskPage() {
  const t = useText(tasksTexts);
  return (
    <TaskFrame
      list="/tasks"
      elsewhere={(task) => MEDIA.includes(task.type) && <Navigate to={`/remove/${task.id}`} replace />}
      facts={(task) => (
        <Facts>
          <Fact name={t("type")}>
            <code>{task.type}</code>
          </Fact>
          <Fact name={t("queue")}>
            <code>{task.queue}</code>
          </Fact>
          <RunFacts task={task} />
        </Facts>
      )}
    />
  );
}
