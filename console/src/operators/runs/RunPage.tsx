import { Button, Code, Group, Stack, Text } from "@mantine/core";
import { useQuery } from "@tanstack/react-query";
import { Link, useParams } from "react-router";
import { api, data, type ExecutionOut, keys } from "../../api";
import {
  copyText,
  Fact,
  Facts,
  IconBan,
  IconCopy,
  Id,
  IdFact,
  JsonView,
  Loaded,
  Page,
  Panel,
  StateBadge,
  TimeFact,
  useAct,
  useConfirm,
} from "../../components";
import { formats, useLanguage, useText } from "../../i18n";
import { pollEvery } from "../live/useChanges";
import { runTexts } from "./runs.texts";

/** One run, with what went wrong and where. */
export default function RunPage() {
  const { uid = "" } = useParams();
  const query = useQuery({
    queryKey: keys.runs.one(uid),
    queryFn: () => data(api.GET("/v1/executions/{execution_id}", { params: { path: { execution_id: uid } } })),
    refetchInterval: ({ state }) => (state.data?.finished_at ? false : pollEvery(5000)()),
  });
  return <Loaded query={query}>{(run) => <Run run={run} />}</Loaded>;
}

function Run({ run }: { run: ExecutionOut }) {
  const t = useText(runTexts);
  const confirm = useConfirm();
  const { busy, act } = useAct(keys.runs.all);
  const params = { path: { execution_id: run.id } };
  const why = useQuery({
    queryKey: keys.runs.why(run.id),
    queryFn: () => data(api.GET("/v1/executions/{execution_id}/why", { params })),
    enabled: run.status === "PENDING",
    refetchInterval: 5000,
  });
  const cancel = async () => {
    const yes = await confirm({ title: t("askCancel"), body: t("cancelText"), action: t("cancel"), danger: true });
    if (yes) await act(() => data(api.POST("/v1/executions/{execution_id}/cancel", { params })), t("canceled"));
  };
  return (
    <Page
      title={t("run", { name: run.schedule_name })}
      text={<Id id={run.id} full />}
      actions={
        !run.finished_at && (
          <Button variant="default" leftSection={<IconBan size={16} />} loading={busy} onClick={() => void cancel()}>
            {t("cancel")}
          </Button>
        )
      }
    >
      <Panel>
        <RunFacts run={run} />
      </Panel>
      {why.data && run.status === "PENDING" && (
        <Panel title={t("why")}>
          <Stack gap="xs">
            {why.data.reasons.map((reason) => (
              <Text key={reason.code} size="sm">
                {reason.text}
              </Text>
            ))}
          </Stack>
        </Panel>
      )}
      {run.error_message && (
        <Panel title={t("error")}>
          <Text size="sm" style={{ whiteSpace: "pre-wrap", overflowWrap: "anywhere" }}>
            {run.error_message}
          </Text>
        </Panel>
      )}
      {run.error_message && (
        <Panel
          title={t("stack")}
          actions={
            run.error_stack && (
              <Button
                size="compact-sm"
                variant="default"
                leftSection={<IconCopy size={14} />}
                onClick={() => void copyText(run.error_stack ?? "")}
              >
                {t("copyStack")}
              </Button>
            )
          }
        >
          {run.error_stack ? (
            <Code block style={{ maxHeight: "32rem", overflow: "auto", background: "var(--surface-2)" }}>
              {run.error_stack}
            </Code>
          ) : (
            <Text size="sm" c="dimmed">
              {t("noStack")}
            </Text>
          )}
        </Panel>
      )}
      {run.result !== null && <JsonView value={parsed(run.result)} label={t("result")} />}
    </Page>
  );
}

function RunFacts({ run }: { run: ExecutionOut }) {
  const t = useText(runTexts);
  const language = useLanguage();
  return (
    <Stack>
      <Group gap="sm">
        <StateBadge state={run.status} />
        <Link to={`/operators/schedules/${run.schedule_id}`}>{t("openSchedule")}</Link>
        {run.task_id && <Link to={`/operators/tasks/${run.task_id}`}>{t("openTask")}</Link>}
      </Group>
      <Facts>
        <TimeFact name={t("due")} at={run.scheduled_at} exact />
        <TimeFact name={t("started")} at={run.started_at} />
        <TimeFact name={t("finished")} at={run.finished_at} />
        <Fact name={t("took")}>{run.started_at ? formats.duration(run.duration_ms, language) : "–"}</Fact>
        <Fact name={t("trigger")}>{t(run.trigger_type)}</Fact>
        <Fact name={t("retry")}>{run.retry_count + 1}</Fact>
        <TimeFact name={t("deadline")} at={run.deadline_at} />
        <IdFact name={t("worker")} id={run.run_by} />
        <IdFact name={t("by")} id={run.trigger_by} />
      </Facts>
    </Stack>
  );
}

function parsed(text: string): unknown {
  try {
    return JSON.parse(text);
  } catch {
    return text;
  }
}
