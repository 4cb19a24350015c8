import "@mantine/charts/styles.layer.css";
import { AreaChart, BarChart, LineChart } from "@mantine/charts";
import { Select, SimpleGrid } from "@mantine/core";
import type { StatisticsRangeOut } from "../../api";
import { Panel } from "../../components";
import { formats, useLanguage, useText } from "../../i18n";
import { overviewTexts } from "./overview.texts";
import { failuresOf, type Step, stepsOf } from "./steps";

const HEIGHT = 230;
const TONES = ["active", "warn", "good", "bad", "neutral"];

/** Four plots over the same time: what ended, what waits, how long it took, and how much of the crew was busy. */
export default function Plots({
  statistics,
  onType,
}: {
  statistics: StatisticsRangeOut;
  onType: (type: string) => void;
}) {
  const t = useText(overviewTexts);
  const language = useLanguage();
  const steps = stepsOf(statistics);
  const locale = language === "zh" ? "zh-CN" : "en";
  const tick = (time: number) =>
    new Date(time).toLocaleString(
      locale,
      statistics.range === "week"
        ? { weekday: "short", hour: "2-digit", hour12: false }
        : { hour: "2-digit", minute: "2-digit", hour12: false },
    );
  const shared = {
    h: HEIGHT,
    dataKey: "label",
    withLegend: true,
    withDots: false,
    curveType: "stepAfter" as const,
    tickLine: "none" as const,
    gridAxis: "x" as const,
    legendProps: { verticalAlign: "bottom" as const, height: 44 },
    xAxisProps: { minTickGap: 40 },
  };
  const whole = (value: number) => formats.number(value, language, { maximumFractionDigits: 1 });
  const seconds = (value: number) => formats.duration(value * 1000, language);
  const labelled = (make: (step: Step, index: number) => Record<string, number | null | undefined>) =>
    steps.map((step, index) => ({ label: tick(step.time), ...make(step, index) }));
  const [done, failed, canceled] = [t("succeeded"), t("failed"), t("canceled")];
  const asked = t("needsInput");
  const [waiting, delayed] = [t("waiting"), t("delayed")];
  const [p50, p95, wait95] = [t("runP50"), t("runP95"), t("waitP95")];
  const [running, slots] = [t("slotsBusy"), t("slots")];
  const rows = new Map(statistics.points.map((point, index) => [Date.parse(point.at), index]));
  const queues = statistics.queues.slice(0, TONES.length);
  return (
    <SimpleGrid cols={{ base: 1, lg: 2 }}>
      <Panel title={t("throughput")} text={t("throughputText")}>
        <BarChart
          {...shared}
          type="stacked"
          data={labelled((step) => ({
            [done]: step.succeeded,
            [failed]: failuresOf(step),
            [asked]: step.needs_input,
            [canceled]: step.canceled,
          }))}
          series={[
            { name: done, color: "var(--good-ink)" },
            { name: failed, color: "var(--bad-ink)" },
            { name: asked, color: "var(--warn-ink)" },
            { name: canceled, color: "var(--neutral-ink)" },
          ]}
          valueFormatter={whole}
          yAxisProps={{ allowDecimals: false }}
        />
      </Panel>
      <Panel title={t("depth")} text={queues.length > 1 ? t("depthByQueue") : t("depthText")}>
        <AreaChart
          {...shared}
          type={queues.length > 1 ? "stacked" : "default"}
          connectNulls={false}
          data={
            queues.length > 1
              ? labelled((step) => {
                  const index = rows.get(step.time);
                  return Object.fromEntries(
                    queues.map((queue) => [queue.name, index === undefined ? null : queue.waiting[index]]),
                  );
                })
              : labelled((step) => ({ [waiting]: step.waiting, [delayed]: step.delayed }))
          }
          series={
            queues.length > 1
              ? queues.map((queue, index) => ({ name: queue.name, color: `var(--${TONES[index]}-ink)` }))
              : [
                  { name: waiting, color: "var(--waiting-ink)" },
                  { name: delayed, color: "var(--neutral-ink)" },
                ]
          }
          valueFormatter={whole}
          yAxisProps={{ allowDecimals: false }}
        />
      </Panel>
      <Panel
        title={t("latency")}
        text={t("latencyText")}
        actions={
          <Select
            size="xs"
            aria-label={t("latencyType")}
            placeholder={t("allTypes")}
            data={statistics.types}
            value={statistics.task_type}
            onChange={(type) => onType(type ?? "")}
            clearable
            searchable
          />
        }
      >
        <LineChart
          {...shared}
          connectNulls={false}
          data={labelled((step) => ({ [p50]: step.run_p50, [p95]: step.run_p95, [wait95]: step.wait_p95 }))}
          series={[
            { name: p50, color: "var(--good-ink)" },
            { name: p95, color: "var(--active-ink)" },
            { name: wait95, color: "var(--waiting-ink)" },
          ]}
          valueFormatter={seconds}
          yAxisProps={{ width: 88 }}
        />
      </Panel>
      <Panel title={t("crew")} text={t("crewText")}>
        <AreaChart
          {...shared}
          connectNulls={false}
          data={labelled((step) => ({ [slots]: step.slots, [running]: step.slots_busy }))}
          series={[
            { name: slots, color: "var(--neutral-ink)" },
            { name: running, color: "var(--active-ink)" },
          ]}
          valueFormatter={whole}
          yAxisProps={{ allowDecimals: false }}
        />
      </Panel>
    </SimpleGrid>
  );
}
