import { Button, Checkbox, Group, Loader, Stack, Text } from "@mantine/core";
import { useEffect, useState } from "react";
import { type AssetOut, api, type CandidateOut, data } from "../../api";
import { IconSearch, ProblemAlert } from "../../components";
import { formats, text, useLanguage, useText, wordFor } from "../../i18n";
import { isOver, useLiveTask } from "../../live/task";
import { MarkedAsset } from "./MarkedPicture";
import { removeTexts } from "./remove.texts";
import { spans } from "./spans";

/** What a candidate is called: by its text if it has one, else by what it is. */
export function nameOf(each: CandidateOut): string {
  if (each.text) return each.text;
  const [kind = "", where] = each.kind.split(" on the ");
  const word = wordFor(removeTexts, `kind-${kind}`);
  const what = word === `kind-${kind}` ? kind : word;
  return `${where ? text(removeTexts)("onMaster", { what }) : what} ${each.id}`;
}

/** Candidates to choose from, each with how sure it is. */
export function CandidateList({
  candidates,
  chosen,
  slides = false,
  onChange,
}: {
  candidates: readonly CandidateOut[];
  slides?: boolean;
  chosen: readonly number[];
  onChange: (chosen: number[]) => void;
}) {
  const t = useText(removeTexts);
  const language = useLanguage();
  return (
    <Stack gap={6}>
      {candidates.map((each) => (
        <Checkbox
          key={each.id}
          checked={chosen.includes(each.id)}
          onChange={(event) =>
            onChange(event.currentTarget.checked ? [...chosen, each.id] : chosen.filter((id) => id !== each.id))
          }
          label={
            <span>
              <b>{nameOf(each)}</b>{" "}
              <Text span size="sm" c="dimmed">
                {t("sure", { percent: formats.percent(each.score, language) })}
                {each.pages &&
                  each.pages.length > 0 &&
                  ` · ${t(slides ? "onSlides" : "onPages", { pages: spans(each.pages) })}`}
              </Text>
            </span>
          }
        />
      ))}
    </Stack>
  );
}

/** Have the server look for marks in a file, and choose from what it finds. */
export function CandidatePicker({
  asset,
  chosen,
  onChange,
}: {
  asset: AssetOut;
  chosen: readonly number[];
  onChange: (chosen: number[]) => void;
}) {
  const t = useText(removeTexts);
  const [taskId, setTaskId] = useState<string | null>(null);
  const [error, setError] = useState<unknown>(null);
  const look = async () => {
    setError(null);
    try {
      const path = { asset_id: asset.id };
      setTaskId((await data(api.POST("/v1/assets/{asset_id}/detect", { params: { path }, body: {} }))).id);
    } catch (refusal) {
      setError(refusal);
    }
  };
  if (error !== null) return <ProblemAlert error={error} onRetry={() => void look()} />;
  if (taskId === null) {
    return (
      <Button variant="default" size="xs" leftSection={<IconSearch size={14} />} onClick={() => void look()}>
        {t("lookFirst")}
      </Button>
    );
  }
  return <Found taskId={taskId} asset={asset} chosen={chosen} onChange={onChange} />;
}

function Found({
  taskId,
  asset,
  chosen,
  onChange,
}: {
  taskId: string;
  asset: AssetOut;
  chosen: readonly number[];
  onChange: (chosen: number[]) => void;
}) {
  const t = useText(removeTexts);
  const task = useLiveTask(taskId).data;
  const candidates = (task?.result as { candidates?: CandidateOut[] } | null)?.candidates;
  const count = candidates?.length;
  // Preselects the most certain candidate.
  // biome-ignore lint/correctness/useExhaustiveDependencies: once, when they are there
  useEffect(() => {
    const sure = candidates?.filter((each) => each.certain).map((each) => each.id) ?? [];
    if (chosen.length === 0 && sure.length > 0) onChange(sure);
  }, [count]);
  if (task && isOver(task.status) && (task.result !== null || task.status !== "SUCCEEDED") && !candidates?.length) {
    return (
      <Text size="sm" c="dimmed">
        {task.error_message ?? t("nothingFound")}
      </Text>
    );
  }
  if (!candidates) {
    return (
      <Group gap="xs">
        <Loader size="xs" />
        <Text size="sm">{t("looking")}</Text>
      </Group>
    );
  }
  return (
    <Stack gap={6}>
      <Text size="sm" fw={600}>
        {t("candidates")}
      </Text>
      <CandidateList candidates={candidates} chosen={chosen} slides={asset.media_type === "PPT"} onChange={onChange} />
      <MarkedAsset asset={asset} candidates={candidates} chosen={chosen} />
    </Stack>
  );
}
