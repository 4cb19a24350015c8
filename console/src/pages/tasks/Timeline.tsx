import { Switch, Text, Tooltip } from "@mantine/core";
import type { LogOut, TaskOut } from "../../api";
import { StateBadge, stateTexts, useFilters, useNow } from "../../components";
import { formats, useLanguage, useText, wordFor } from "../../i18n";
import { useSteps } from "../../live/task";
import { lastLine } from "./lastLine";
import classes from "./Timeline.module.css";
import { tasksTexts } from "./tasks.texts";
import { type Bar, bars } from "./timeline";

const DEFAULTS = { steps: "" };

/** Attempts and their steps as bars on one scale, so that one sees where the time went. */
export function Timeline({ task, lines }: { task: TaskOut; lines: readonly LogOut[] }) {
  const t = useText(tasksTexts);
  const now = useNow();
  const filters = useFilters(DEFAULTS);
  const onlyFailed = filters.values.steps === "failed";
  const found = useSteps(task.id, onlyFailed).data;
  const steps = found?.items ?? [];
  const cut = found !== undefined && found.next !== null;
  const drawn = bars(task, lines, steps, now);
  return (
    <div>
      {(onlyFailed || cut || steps.some((step) => step.status === "FAILED")) && (
        <Switch
          size="xs"
          mb="sm"
          label={t("onlyFailed")}
          checked={onlyFailed}
          onChange={(event) => filters.set({ steps: event.currentTarget.checked ? "failed" : "" })}
        />
      )}
      {found && onlyFailed && steps.length === 0 && (
        <Text size="sm" c="dimmed">
          {t("noneFailed")}
        </Text>
      )}
      <div className={classes.timeline}>
        {drawn.map((bar) => (
          <Row key={`${bar.attempt}.${bar.step ?? ""}`} bar={bar} />
        ))}
      </div>
      {cut && (
        <Text size="sm" c="dimmed" mt="xs">
          {t("firstSteps", { n: steps.length })}
        </Text>
      )}
    </div>
  );
}

function Row({ bar }: { bar: Bar }) {
  const t = useText(tasksTexts);
  const language = useLanguage();
  const name = bar.step === null ? t("attemptN", { n: bar.attempt }) : wordFor(stateTexts, bar.step);
  const lasted = bar.ms === null ? null : formats.duration(bar.ms, language);
  const at = (share: number) => `${share * 100}%`;
  return (
    <div className={classes.row} data-step={bar.step !== null || undefined}>
      <div className={classes.name}>
        <Text size="sm" fw={bar.step === null ? 600 : 400} truncate>
          {name}
        </Text>
      </div>
      <div className={classes.track}>
        {bar.waited > 0 && (
          <Tooltip label={bar.ms === null && bar.state !== "waiting" ? t("waitedAndRan") : t("waited")}>
            <div className={classes.wait} style={{ left: at(bar.from - bar.waited), width: at(bar.waited) }} />
          </Tooltip>
        )}
        {bar.state !== "waiting" && (
          <Tooltip label={lasted === null ? name : `${name} · ${lasted}`}>
            <div
              className={classes.bar}
              data-state={bar.state}
              style={{ left: `min(${at(bar.from)}, 100% - 3px)`, width: `max(3px, ${at(bar.share)})` }}
            />
          </Tooltip>
        )}
      </div>
      <Text size="xs" c="dimmed" className={classes.time}>
        {lasted}
      </Text>
      <StateBadge state={bar.status} />
      {bar.message && (
        <Text size="xs" c="dimmed" truncate className={classes.message} title={lastLine(bar.message)}>
          {lastLine(bar.message)}
        </Text>
      )}
    </div>
  );
}
