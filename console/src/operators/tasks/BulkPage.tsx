import { Button, Progress, Stack, Text } from "@mantine/core";
import { useQuery, useQueryClient } from "@tanstack/react-query";
import { Link, useParams } from "react-router";
import { api, type BulkOut, data, keys, type TaskOut } from "../../api";
import {
  Fact,
  Facts,
  IconPlayerPlay,
  IconPlayerStop,
  Id,
  Loaded,
  Page,
  Panel,
  StateBadge,
  Time,
  useAct,
  useConfirm,
} from "../../components";
import { formats, useLanguage, useText } from "../../i18n";
import { isOver } from "../../live/task";
import { useEvents } from "../../live/useEvents";
import { bulkName } from "./bulkWords";
import { FilterWords } from "./FilterWords";
import { bulkTexts } from "./tasks.texts";

/** One action on many rows: how far it is, what was refused, and a way to stop it. */
export default function BulkPage() {
  const { taskId = "" } = useParams();
  const queries = useQueryClient();
  const query = useQuery({
    queryKey: keys.bulk.one(taskId),
    queryFn: async () => {
      const path = { task_id: taskId };
      const [bulk, task] = await Promise.all([
        data(api.GET("/v1/tasks/bulk/{task_id}", { params: { path } })),
        data(api.GET("/v1/tasks/{task_id}", { params: { path } })),
      ]);
      return { bulk, task };
    },
    refetchInterval: ({ state }) => (state.data && isOver(state.data.task.status) ? false : 2000),
  });
  const over = query.data ? isOver(query.data.task.status) : true;
  const look = () => void queries.invalidateQueries({ queryKey: keys.bulk.one(taskId) });
  useEvents(over ? null : `/v1/tasks/${taskId}/events`, { task: look, end: look });
  return <Loaded query={query}>{({ bulk, task }) => <Bulk bulk={bulk} task={task} />}</Loaded>;
}

function Bulk({ bulk, task }: { bulk: BulkOut; task: TaskOut }) {
  const t = useText(bulkTexts);
  const language = useLanguage();
  const confirm = useConfirm();
  const { busy, act } = useAct(keys.bulk.all, keys.tasks.all);
  const { id: taskId } = task;
  const over = isOver(task.status);
  const n = (value: number) => formats.number(value, language);
  const looked = bulk.done + bulk.skipped + bulk.refused;
  const share = bulk.finished_at ? 100 : Math.min(99, (100 * looked) / Math.max(bulk.matched, 1));
  const move = (verb: "cancel" | "retry") =>
    act(() => data(api.POST(`/v1/tasks/{task_id}/${verb}`, { params: { path: { task_id: taskId } } })));
  const stop = async () => {
    const yes = await confirm({ title: t("stopAsk"), body: t("stopText"), action: t("stop"), danger: true });
    if (yes) await move("cancel");
  };
  return (
    <Page
      title={bulkName(bulk)}
      text={
        <>
          {t("asked")} <Time at={bulk.created_at} /> · <Link to={`/operators/tasks/${taskId}`}>{t("openTask")}</Link>
        </>
      }
      actions={
        over ? (
          (task.status === "CANCELED" || task.status === "FAILED") && (
            <Button leftSection={<IconPlayerPlay size={16} />} loading={busy} onClick={() => void move("retry")}>
              {t("goOn")}
            </Button>
          )
        ) : (
          <Button
            variant="default"
            leftSection={<IconPlayerStop size={16} />}
            loading={busy}
            onClick={() => void stop()}
          >
            {t("stop")}
          </Button>
        )
      }
    >
      <Panel>
        <Stack>
          <div role="status">
            <StateBadge state={task.status} />{" "}
            <Text span size="sm" c="dimmed">
              {task.status === "SUCCEEDED" && t("finished")}
              {task.status === "QUEUED" && t("waiting")}
              {task.status === "CANCELED" && t("stopped")}
              {task.status === "FAILED" && `${t("failed")} ${task.error_message ?? ""}`}
            </Text>
          </div>
          <Progress value={share} size="lg" animated={!over} aria-label={t("done")} />
          <Facts>
            <Fact name={t("matched")}>{n(bulk.matched)}</Fact>
            <Fact name={t("done")}>{n(bulk.done)}</Fact>
            <Fact name={t("skipped")}>
              {n(bulk.skipped)} {bulk.skipped > 0 && <small>({t("skippedText")})</small>}
            </Fact>
            <Fact name={t("refused")}>{n(bulk.refused)}</Fact>
            <Fact name={t("by")}>
              <Id id={bulk.user_id} />
            </Fact>
          </Facts>
        </Stack>
      </Panel>
      <Panel title={t("filter")}>
        <FilterWords filter={bulk.filter} />
      </Panel>
      {bulk.refusals.length > 0 && (
        <Panel title={t("refusals")}>
          <Stack gap="xs">
            {bulk.refusals.map((refusal) => (
              <Text size="sm" key={refusal.id} component="div">
                <Id id={refusal.id} /> {refusal.message}
              </Text>
            ))}
          </Stack>
        </Panel>
      )}
    </Page>
  );
}
