import { Group, Progress, Text } from "@mantine/core";
import type { TaskOut } from "../../api";
import { IconCheck, Panel } from "../../components";
import { formats, useLanguage, useText } from "../../i18n";
import { useSteps } from "../../live/task";
import { WhyItWaits } from "../tasks/WhyItWaits";
import classes from "./ProgressPanel.module.css";
import { removalTexts } from "./remove.texts";

const STEPS = ["PREPROCESSING", "DETECTING", "INPAINTING", "PACKAGING"] as const;

/** How far it is: in per cent, by steps, and how long it may still take. */
export function ProgressPanel({ task }: { task: TaskOut }) {
  const t = useText(removalTexts);
  const language = useLanguage();
  const steps = useSteps(task.id, false).data?.items ?? [];
  const isDone = (name: string) =>
    steps.some((step) => step.name === name && step.ended_at !== null && step.status !== "FAILED");
  const left = task.eta_seconds;
  return (
    <Panel>
      <div data-testid="progress" aria-live="polite">
        <Group justify="space-between" mb={8}>
          <Text fw={600}>{t("progress")}</Text>
          <Text size="sm" c="dimmed" className="figures">
            {task.progress} %
            {left !== null &&
              ` · ${left < 2 ? t("soon") : t("timeLeft", { time: formats.duration(left * 1000, language) })}`}
          </Text>
        </Group>
        <Progress value={task.progress} size="lg" animated aria-label={t("progress")} />
        <ol className={classes.steps}>
          {STEPS.map((name) => {
            const state = isDone(name) ? "done" : task.current_step === name || task.status === name ? "now" : "later";
            return (
              <li key={name} className={classes.step} data-state={state}>
                <Group gap={6} wrap="nowrap">
                  {state === "done" && <IconCheck size={15} />}
                  {t(name)}
                </Group>
              </li>
            );
          })}
        </ol>
      </div>
      {task.status === "QUEUED" && (
        <div style={{ marginTop: "1rem" }}>
          <WhyItWaits taskId={task.id} />
        </div>
      )}
    </Panel>
  );
}
