import { SegmentedControl, SimpleGrid, Stack, Text } from "@mantine/core";
import { useQuery } from "@tanstack/react-query";
import { lazy, type ReactNode, Suspense } from "react";
import { Link } from "react-router";
import { type AlarmOut, api, data, keys, type OverviewOut, query, type Range } from "../../api";
import {
  Empty,
  IconActivity,
  IconCircleCheck,
  Loaded,
  Loading,
  Page,
  Panel,
  StateBadge,
  Time,
  useFilters,
} from "../../components";
import { formats, useLanguage, useText, wordFor } from "../../i18n";
import { pollEvery } from "../live/useChanges";
import { partTexts } from "../parts/parts.texts";
import classes from "./Overview.module.css";
import { checkTexts, overviewTexts } from "./overview.texts";
import { totals } from "./steps";

const Plots = lazy(() => import("./Plots"));
const DEFAULTS = { range: "hour", type: "" };

/** What runs, what waits and why, what failed, and what wants attention. */
export default function OverviewPage() {
  const t = useText(overviewTexts);
  const { values, set } = useFilters(DEFAULTS);
  const range = values.range as Range;
  const overview = useQuery({
    queryKey: keys.operators.overview,
    queryFn: () => data(api.GET("/v1/admin/overview")),
    refetchInterval: pollEvery(5000),
  });
  const statistics = useQuery({
    queryKey: keys.operators.statistics(range, values.type),
    queryFn: () =>
      data(api.GET("/v1/admin/statistics", { params: { query: query({ range, task_type: values.type }) } })),
    refetchInterval: 20_000,
    placeholderData: (before) => before,
  });
  return (
    <Page
      title={t("title")}
      text={t("text")}
      actions={
        <SegmentedControl
          aria-label={t("range")}
          value={range}
          onChange={(chosen) => set({ range: chosen })}
          data={[
            { value: "hour", label: t("hour") },
            { value: "day", label: t("day") },
            { value: "week", label: t("week") },
          ]}
        />
      }
    >
      <Loaded query={overview}>
        {(found) => <Figures overview={found} failed={statistics.data ? totals(statistics.data) : null} />}
      </Loaded>
      <Loaded query={statistics} lines={6}>
        {(found) =>
          found.points.length > 0 ? (
            <Suspense fallback={<Loading lines={6} />}>
              <Plots statistics={found} onType={(type) => set({ type })} />
            </Suspense>
          ) : (
            <NothingYet />
          )
        }
      </Loaded>
      {overview.data && (
        <SimpleGrid cols={{ base: 1, lg: 2 }}>
          <Panel title={t("alarms")} text={<Checked at={overview.data.alarms_at} />}>
            <Alarms alarms={overview.data.alarms} />
          </Panel>
          <Panel title={t("queues")} text={t("queuesText")}>
            <QueueList overview={overview.data} />
          </Panel>
        </SimpleGrid>
      )}
    </Page>
  );
}

function NothingYet() {
  const t = useText(partTexts);
  return (
    <Panel>
      <Empty icon={IconActivity} title={t("nothingMeasured")} text={t("nothingMeasuredText")} />
    </Panel>
  );
}

function Checked({ at }: { at: string }) {
  const t = useText(overviewTexts);
  return (
    <>
      {t("checked")} <Time at={at} />
    </>
  );
}

function Figures({ overview, failed }: { overview: OverviewOut; failed: ReturnType<typeof totals> | null }) {
  const t = useText(overviewTexts);
  const language = useLanguage();
  const n = (value: number) => formats.number(value, language);
  const { workers } = overview;
  return (
    <SimpleGrid cols={{ base: 2, sm: 3, lg: 6 }} className={classes.figures}>
      <Figure name={t("waiting")} to="/operators/tasks?status=QUEUED">
        {overview.exact ? n(overview.waiting) : `${n(overview.waiting)}+`}
        <Note>{overview.delayed > 0 ? t("later", { n: overview.delayed }) : null}</Note>
      </Figure>
      <Figure name={t("running")} to="/operators/tasks?status=RUNNING">
        {n(overview.running)}
      </Figure>
      <Figure name={t("oldest")}>
        {overview.oldest_waiting_seconds === null
          ? "–"
          : formats.duration(overview.oldest_waiting_seconds * 1000, language)}
        <Note>{overview.oldest_waiting_queue && t("inQueue", { name: overview.oldest_waiting_queue })}</Note>
      </Figure>
      <Figure name={t("workers")} to="/operators/workers">
        {n(workers.alive)}
        <Note tone={workers.silent > 0 ? "bad" : undefined}>
          {workers.silent > 0 ? t("silent", { n: workers.silent }) : null}
        </Note>
      </Figure>
      <Figure name={t("slotsBusy")} to="/operators/workers">
        {n(workers.running)} / {n(workers.slots)}
      </Figure>
      <Figure name={t("failures")} to="/operators/tasks?status=FAILED">
        {failed === null ? "…" : n(failed.failed)}
        <Note>{failed !== null && failed.ended > 0 ? t("ofEnded", { n: failed.ended }) : null}</Note>
      </Figure>
    </SimpleGrid>
  );
}

function Figure({ name, to, children }: { name: string; to?: string; children: ReactNode }) {
  const inner = (
    <>
      <div className={classes.name}>{name}</div>
      <div className={`${classes.value} figures`}>{children}</div>
    </>
  );
  return to ? (
    <Link to={to} className={classes.figure}>
      {inner}
    </Link>
  ) : (
    <div className={classes.figure}>{inner}</div>
  );
}

function Note({ children, tone }: { children: ReactNode; tone?: "bad" | undefined }) {
  return (
    <span className={classes.note} data-tone={tone}>
      {children}
    </span>
  );
}

/** Where a check is looked into. */
const PLACES: Readonly<Record<string, string>> = {
  tasks: "/operators/tasks?status=QUEUED",
  outbox: "/operators/outbox",
  webhooks: "/operators/webhooks",
  ledger: "/operators/ledger",
  locks: "/operators/locks",
  payments: "/operators/plans",
  sealing: "/operators/audit",
  deletions: "/operators/users",
  partitions: "/operators/archives",
  retention: "/operators/archives",
};

/** What wants attention first; what is well in one line. */
function Alarms({ alarms }: { alarms: readonly AlarmOut[] }) {
  const t = useText(overviewTexts);
  const wrong = alarms.filter((alarm) => alarm.verdict === "warning" || alarm.verdict === "bad");
  const well = alarms.length - wrong.length;
  return (
    <Stack gap="sm">
      {wrong.map((alarm) => (
        <Link
          key={alarm.check}
          to={PLACES[alarm.check] ?? "/operators/settings"}
          className={classes.alarm}
          data-verdict={alarm.verdict}
        >
          <StateBadge
            state={alarm.verdict}
            tone={alarm.verdict === "bad" ? "bad" : "warn"}
            label={checkName(alarm.check)}
          />
          <Text size="sm">{alarm.message}</Text>
        </Link>
      ))}
      <details className={classes.well}>
        <summary>
          <IconCircleCheck size={18} />
          {wrong.length === 0 ? t("allWell", { n: well }) : t("othersWell", { n: well })}
        </summary>
        <Stack gap={6} mt="xs">
          {alarms
            .filter((alarm) => !wrong.includes(alarm))
            .map((alarm) => (
              <Text size="sm" key={alarm.check} component="div">
                <Link to={PLACES[alarm.check] ?? "/operators/settings"}>{checkName(alarm.check)}</Link>: {alarm.message}
              </Text>
            ))}
        </Stack>
      </details>
    </Stack>
  );
}

function checkName(check: string): string {
  return wordFor(checkTexts, check);
}

function QueueList({ overview }: { overview: OverviewOut }) {
  const t = useText(overviewTexts);
  const language = useLanguage();
  const n = (value: number) => formats.number(value, language);
  if (overview.queues.length === 0) return <Text c="dimmed">{t("noQueues")}</Text>;
  const most = Math.max(1, ...overview.queues.map((queue) => queue.waiting + queue.running));
  return (
    <Stack gap="xs">
      {overview.queues.slice(0, 12).map((queue) => (
        <Link
          key={queue.name}
          to={`/operators/tasks?queue=${encodeURIComponent(queue.name)}`}
          className={classes.queue}
        >
          <span className={classes.queueName}>
            {queue.name} {queue.paused_at && <StateBadge state="PAUSED" />}
          </span>
          <span className={`${classes.queueFacts} figures`}>
            {t("queueFacts", {
              waiting: queue.exact ? n(queue.waiting) : `${n(queue.waiting)}+`,
              running: n(queue.running),
            })}
          </span>
          <span className={classes.track}>
            <span
              className={classes.bar}
              data-paused={queue.paused_at !== null || undefined}
              style={{ width: `${(100 * (queue.waiting + queue.running)) / most}%` }}
            />
          </span>
        </Link>
      ))}
    </Stack>
  );
}
