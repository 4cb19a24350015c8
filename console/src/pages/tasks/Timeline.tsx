import { Switch, Text, Tooltip } from "@mantine/core";
import { useState } from "react";
import type { StepOut, TaskOut } from "../../api";
import { StateBadge, stateTexts, useNow } from "../../components";
import { formats, useLanguage, useText, wordFor } from "../../i18n";
import classes from "./Timeline.module.css";
import { tasksTexts } from "./tasks.texts";
import { bars } from "./timeline";

/** Bars by attempt and step, to scale, so that one sees where the time went. */
export function Timeline({ task, steps }: { task: TaskOut; steps: readonly StepOut[] }) {
  const t = useText(tasksTexts);
  const language = useLanguage();
  const now = useNow();
  const [onlyFailed, setOnlyFailed] = useState(false);
  const hasFailed = steps.some((step) => step.status === "FAILED");
  const drawn = bars(task, onlyFailed ? steps.filter((step) => step.status === "FAILED") : steps, now);
  if (steps.length === 0) {
    return (
      <Text size="sm" c="dimmed">
        {t("noSteps")}
      </Text>
    );
  }
  return (
    <div>
      {hasFailed && (
        <Switch
          size="xs"
          mb="sm"
          label={t("onlyFailed")}
          checked={onlyFailed}
          onChange={(event) => setOnlyFailed(event.currentTarget.checked)}
        />
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
    </div>
  );
}
