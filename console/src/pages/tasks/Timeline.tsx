import { Switch, Text, Tooltip } from "@mantine/core";
import type { TaskOut } from "../../api";
import { StateBadge, stateTexts, useFilters, useNow } from "../../components";
import { formats, useLanguage, useText, wordFor } from "../../i18n";
import { useSteps } from "../../live/task";
import classes from "./Timeline.module.css";
import { tasksTexts } from "./tasks.texts";
import { bars } from "./timeline";

const DEFAULTS = { steps: "" };

/** Bars by attempt and step, to scale, so that one sees where the time went. */
export function Timeline({ task }: { task: TaskOut }) {
  const t = useText(tasksTexts);
  const language = useLanguage();
  const now = useNow();
  const filters = useFilters(DEFAULTS);
  const onlyFailed = filters.values.steps === "failed";
  const found = useSteps(task.id, onlyFailed).data;
  const steps = found?.items ?? [];
  const cut = found !== undefined && found.next !== null;
  const drawn = bars(task, steps, now);
  if (steps.length === 0 && !onlyFailed) {
    return (
      <Text size="sm" c="dimmed">
        {t("noSteps")}
      </Text>
    );
  }
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
        {drawn.map((bar, index) => (
          <div key={`${bar.step.attempt}.${bar.step.name}`} className={classes.row}>
            <div className={classes.name}>
              {bar.step.attempt !== drawn[index - 1]?.step.attempt && (
                <Text size="xs" c="dimmed">
                  {t("attemptN", { n: bar.step.attempt })}
                </Text>
              )}
              <Text size="sm" truncate>
                {wordFor(stateTexts, bar.step.name)}
              </Text>
            </div>
            <div className={classes.track}>
              <Tooltip label={`${wordFor(stateTexts, bar.step.name)} · ${formats.duration(bar.ms, language)}`}>
                <div
                  className={classes.bar}
                  data-state={bar.state}
                  style={{ left: `${bar.from * 100}%`, width: `max(3px, ${bar.share * 100}%)` }}
                />
              </Tooltip>
            </div>
            <Text size="xs" c="dimmed" className={classes.time}>
              {formats.duration(bar.ms, language)}
            </Text>
            <StateBadge state={bar.step.status} />
          </div>
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
