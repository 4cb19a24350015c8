import { Alert, Button, Group, Menu, SimpleGrid, Stack, Text } from "@mantine/core";
import { useQuery } from "@tanstack/react-query";
import { Link, useNavigate, useParams } from "react-router";
import { api, data, keys, type ScheduleOut } from "../../api";
import {
  Empty,
  Fact,
  Facts,
  IconDotsVertical,
  IconEdit,
  IconHistory,
  IconPlayerPause,
  IconPlayerPlay,
  IconPlayerSkipForward,
  IconTrash,
  IdFact,
  JsonView,
  Loaded,
  Page,
  Panel,
  StateBadge,
  Time,
  useAct,
  useConfirm,
} from "../../components";
import { formats, useLanguage, useText } from "../../i18n";
import { useMe } from "../../session/store";
import { pollEvery } from "../live/useChanges";
import { AUDITED_EVERY_MS, OWN_EVERY_MS } from "../parts/audited";
import { labelLines } from "../parts/labels";
import { partTexts } from "../parts/parts.texts";
import { RunTable } from "../runs/RunsPage";
import { inZone, rhythmOf } from "./rhythm";
import { scheduleFormTexts, scheduleTexts } from "./schedules.texts";
import { Timeline } from "./Timeline";

/** One schedule: when it runs, how it has done, and every run. */
export default function SchedulePage() {
  const { uid = "" } = useParams();
  const { user } = useMe();
  const query = useQuery({
    queryKey: keys.schedules.one(uid),
    queryFn: () => data(api.GET("/v1/schedules/{schedule_id}", { params: { path: { schedule_id: uid } } })),
    refetchInterval: ({ state }) => (state.data?.user_id === user.id ? OWN_EVERY_MS : AUDITED_EVERY_MS),
  });
  return <Loaded query={query}>{(schedule) => <Schedule schedule={schedule} />}</Loaded>;
}

function Schedule({ schedule }: { schedule: ScheduleOut }) {
  const t = useText(scheduleTexts);
  const navigate = useNavigate();
  const confirm = useConfirm();
  const { busy, act } = useAct(keys.schedules.all, keys.runs.all);
  const { id: uid } = schedule;
  const params = { path: { schedule_id: uid } };
  const remove = async () => {
    const yes = await confirm({
      title: t("askDelete", { name: schedule.name }),
      body: t("deleteText"),
      action: t("delete"),
      danger: true,
    });
    if (!yes) return;
    if (await act(() => data(api.DELETE("/v1/schedules/{schedule_id}", { params })), t("deleted"))) {
      void navigate("/operators/schedules");
    }
  };
  const toggle = () =>
    schedule.enabled
      ? act(() => data(api.POST("/v1/schedules/{schedule_id}/disable", { params })), t("disabled"))
      : act(() => data(api.POST("/v1/schedules/{schedule_id}/enable", { params })), t("enabled"));
  return (
    <Page
      title={schedule.name}
      text={schedule.description ?? schedule.type}
      actions={
        <>
          <Button
            leftSection={<IconPlayerSkipForward size={16} />}
            loading={busy}
            onClick={() => void act(() => data(api.POST("/v1/schedules/{schedule_id}/run", { params })), t("started"))}
          >
            {t("runNow")}
          </Button>
          <Button
            component={Link}
            to={`/operators/schedules/${uid}/edit`}
            variant="default"
            leftSection={<IconEdit size={16} />}
          >
            {t("edit")}
          </Button>
          <Menu position="bottom-end">
            <Menu.Target>
              <Button variant="default" px="xs" aria-label="…">
                <IconDotsVertical size={16} />
              </Button>
            </Menu.Target>
            <Menu.Dropdown>
              <Menu.Item
                leftSection={schedule.enabled ? <IconPlayerPause size={16} /> : <IconPlayerPlay size={16} />}
                onClick={() => void toggle()}
              >
                {schedule.enabled ? t("disable") : t("enable")}
              </Menu.Item>
              <Menu.Item leftSection={<IconTrash size={16} />} onClick={() => void remove()}>
                {t("delete")}
              </Menu.Item>
            </Menu.Dropdown>
          </Menu>
        </>
      }
    >
      {(schedule.warnings ?? []).map((warning) => (
        <Alert key={warning.code} color="yellow" variant="light">
          {warning.text}
        </Alert>
      ))}
      <SimpleGrid cols={{ base: 1, lg: 2 }}>
        <Rules schedule={schedule} />
        <Upcoming schedule={schedule} />
      </SimpleGrid>
      <Figures schedule={schedule} />
      <Runs schedule={schedule} />
      {schedule.data !== null && schedule.data !== undefined && <JsonView value={schedule.data} label={t("data")} />}
    </Page>
  );
}

function Rules({ schedule }: { schedule: ScheduleOut }) {
  const t = useText(scheduleTexts);
  const part = useText(partTexts);
  const language = useLanguage();
  const forms = useText(scheduleFormTexts);
  const labels = labelLines(schedule.labels);
  const misfire = { latest: t("latest"), all: t("all"), none: t("nothing") }[schedule.misfire_policy];
  return (
    <Panel title={t("facts")} actions={<StateBadge state={schedule.enabled ? "enabled" : "disabled"} />}>
      <Facts>
        <Fact name={t("rhythm")}>
          <code>{rhythmOf(schedule)}</code>
        </Fact>
        <Fact name={t("zone")}>{schedule.timezone}</Fact>
        <Fact name={t("last")}>
          <Time at={schedule.last_executed_at} />
        </Fact>
        <Fact name={t("misfire")}>{misfire}</Fact>
        <Fact name={t("concurrent")}>{schedule.max_concurrent}</Fact>
        <Fact name={forms("overlap")}>
          {forms(schedule.overlap_policy)}
          {schedule.max_waiting !== null && ` (${schedule.max_waiting})`}
        </Fact>
        <Fact name={t("retries")}>{schedule.max_retries}</Fact>
        <Fact name={t("duration")}>{formats.duration(schedule.max_duration_seconds * 1000, language)}</Fact>
        <Fact name={t("priority")}>{schedule.priority}</Fact>
        {labels.length > 0 && <Fact name={t("labels")}>{labels.join(", ")}</Fact>}
        <IdFact name={part("id")} id={schedule.id} />
      </Facts>
    </Panel>
  );
}

function Upcoming({ schedule }: { schedule: ScheduleOut }) {
  const t = useText(scheduleTexts);
  const params = { path: { schedule_id: schedule.id }, query: { count: 6 } };
  const query = useQuery({
    queryKey: keys.schedules.next(schedule.id, schedule.version, schedule.next_run),
    queryFn: () => data(api.GET("/v1/schedules/{schedule_id}/next", { params })),
  });
  const times = query.data?.times ?? [];
  return (
    <Panel title={t("upcoming")} text={t("inZone", { zone: schedule.timezone })}>
      {times.length === 0 ? (
        <Text size="sm" c="dimmed">
          {query.data ? t("noUpcoming") : "…"}
        </Text>
      ) : (
        <Stack gap={6}>
          {times.map((at) => (
            <Group key={at} justify="space-between" gap="sm" wrap="nowrap">
              <Text size="sm">{inZone(at, schedule.timezone)}</Text>
              <Text size="sm" c="dimmed" span>
                <Time at={at} />
              </Text>
            </Group>
          ))}
        </Stack>
      )}
    </Panel>
  );
}

function Figures({ schedule: { id: uid, total_executions } }: { schedule: ScheduleOut }) {
  const t = useText(scheduleTexts);
  const language = useLanguage();
  const query = useQuery({
    queryKey: keys.schedules.statistics(uid, total_executions),
    placeholderData: (before) => before,
    queryFn: () => data(api.GET("/v1/schedules/{schedule_id}/statistics", { params: { path: { schedule_id: uid } } })),
  });
  const found = query.data;
  if (!found) return null;
  const ms = (value: number | null) => (value === null ? "–" : formats.duration(value, language));
  const n = (value: number) => formats.number(value, language);
  return (
    <Panel title={t("statistics")}>
      <Facts>
        <Fact name={t("total")}>{n(found.total_executions)}</Fact>
        <Fact name={t("succeeded")}>
          {n(found.succeeded_executions)}{" "}
          {found.success_rate !== null && <small>({formats.percent(found.success_rate, language)})</small>}
        </Fact>
        <Fact name={t("failed")}>{n(found.failed_executions)}</Fact>
        <Fact name={t("attempts")}>{n(found.total_attempts)}</Fact>
        <Fact name={t("skipped")}>{n(found.skipped_runs)}</Fact>
        <Fact name={t("average")}>{ms(found.average_ms)}</Fact>
        <Fact name={t("p95")}>{ms(found.p95_ms)}</Fact>
        <Fact name={t("longest")}>{ms(found.longest_ms)}</Fact>
        {found.last_failure_error && <Fact name={t("lastError")}>{found.last_failure_error}</Fact>}
      </Facts>
    </Panel>
  );
}

function Runs({ schedule: { id: uid, user_id } }: { schedule: ScheduleOut }) {
  const t = useText(scheduleTexts);
  const { user } = useMe();
  const query = useQuery({
    queryKey: keys.runs.timeline({ schedule_id: uid }),
    queryFn: () => data(api.GET("/v1/executions", { params: { query: { schedule_id: uid, user_id, limit: 12 } } })),
    refetchInterval: pollEvery(user_id === user.id ? OWN_EVERY_MS : AUDITED_EVERY_MS),
  });
  const runs = query.data?.items ?? [];
  return (
    <>
      {runs.length > 0 && (
        <Panel title={t("timeline")} text={t("timelineText")}>
          <Timeline runs={runs} />
        </Panel>
      )}
      <Stack gap="sm">
        <Text fw={600} component="h2" fz="lg" m={0}>
          {t("history")}
        </Text>
        <RunTable
          filter={{ schedule_id: uid, user_id }}
          empty={<Empty icon={IconHistory} title={t("noRuns")} text={t("noRunsText")} />}
        />
      </Stack>
    </>
  );
}
