import { Button, Group } from "@mantine/core";
import { Link, useNavigate } from "react-router";
import { api, ifMatch, keys, type TaskOut } from "../../api";
import { IconPhoto, IconPlayerStop, IconRefresh, IconTrash, useAct, useConfirm } from "../../components";
import { useText } from "../../i18n";
import { isOver } from "../../live/task";
import { MEDIA } from "./failure";
import { tasksTexts } from "./tasks.texts";

/** What can be done with one task; `list` is where one goes when it is deleted. */
export function TaskActions({ task, list }: { task: TaskOut; list: string }) {
  const t = useText(tasksTexts);
  const confirm = useConfirm();
  const navigate = useNavigate();
  const { act } = useAct(keys.tasks.all);
  const { act: leave } = useAct(keys.tasks.ownLists, keys.tasks.everybodysLists); // what is deleted cannot be read again
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
      void navigate(list);
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
