import { Alert, Anchor, Button, Group, Loader, Progress, Stack, Text } from "@mantine/core";
import { lazy, Suspense, useEffect, useState } from "react";
import { type AssetOut, api, type CandidateOut, data } from "../../api";
import { errorWords, IconAlertTriangle, Loading, Panel } from "../../components";
import { formats, useLanguage, useText } from "../../i18n";
import { isOver, useLiveTask } from "../../live/task";
import { CandidateList } from "./CandidateList";
import { copyDrawing, type DraftFile, setChosen, setDetection, setDrawing, setRegions } from "./draft";
import { MarkedAsset } from "./MarkedPicture";
import { isMarked } from "./mask/drawing";
import { kindOf } from "./media";
import { removeTexts } from "./remove.texts";
import { Thumbnail } from "./Thumbnail";
import classes from "./Workbench.module.css";

const AssetEditor = lazy(() => import("./AssetEditor").then((module) => ({ default: module.AssetEditor })));
const EditorDialog = lazy(() => import("./EditorDialog"));

/** The picture of one file, as large as the page, with what was found in it: it is corrected right there. */
export function Workbench({ file }: { file: DraftFile }) {
  if (file.error !== null) return <Refused file={file} />;
  if (file.asset === null) return <Arriving file={file} />;
  return <Marking key={file.asset.id} file={file} asset={file.asset} />;
}

function Refused({ file }: { file: DraftFile }) {
  return (
    <Alert icon={<IconAlertTriangle />} color="red" variant="light" title={file.name} role="alert">
      {errorWords(file.error)}
    </Alert>
  );
}

/** A file on its way: what this browser can show of it, and how far it is. */
function Arriving({ file }: { file: DraftFile }) {
  const t = useText(removeTexts);
  const language = useLanguage();
  const share = file.sent / Math.max(file.size, 1);
  const percent = formats.percent(share, language);
  return (
    <div className={classes.arriving}>
      {file.local ? (
        <img src={file.local} alt={file.name} />
      ) : (
        <Thumbnail src={null} kind={kindOf(file.name)} size={160} />
      )}
      <Stack gap={6} className={classes.progress}>
        <Text size="sm" fw={600}>
          {share >= 1 ? t("checking") : file.sent > 0 ? t("uploading", { percent }) : t("waitingToUpload")}
        </Text>
        <Progress value={share * 100} aria-label={t("uploading", { percent })} />
      </Stack>
    </div>
  );
}

function Marking({ file, asset }: { file: DraftFile; asset: AssetOut }) {
  const [enlarged, setEnlarged] = useState(false);
  // A drawing that was changed elsewhere, over the whole window or by another file's, opens the editor again.
  const [edition, setEdition] = useState(0);
  const [drawn, setDrawn] = useState(file.drawing);
  useEffect(() => {
    if (file.drawing === drawn) return;
    setDrawn(file.drawing);
    setEdition((now) => now + 1);
  }, [file.drawing, drawn]);
  const toggle = (id: number) => {
    const { chosen } = file;
    setChosen(file.key, chosen.includes(id) ? chosen.filter((each) => each !== id) : [...chosen, id]);
  };
  const marks = { found: file.regions ?? undefined, chosen: file.chosen, onToggle: toggle };
  if (asset.media_type === "PPT") {
    return (
      <Panel>
        <MarkedAsset asset={asset} candidates={file.regions ?? []} chosen={file.chosen} onToggle={toggle} />
      </Panel>
    );
  }
  return (
    <Suspense fallback={<Loading />}>
      {/* One editor at a time: keys are for one of them. */}
      {!enlarged && (
        <AssetEditor
          key={edition}
          asset={asset}
          initial={file.drawing}
          onChange={(drawing) => {
            setDrawn(drawing);
            setDrawing(file.key, drawing);
          }}
          onEnlarge={() => setEnlarged(true)}
          {...marks}
        />
      )}
      {enlarged && (
        <EditorDialog
          asset={asset}
          initial={file.drawing}
          onUse={(drawing) => {
            setDrawing(file.key, drawing);
            setEnlarged(false);
          }}
          onClose={() => setEnlarged(false)}
        />
      )}
    </Suspense>
  );
}

/** What was found in the file that is seen, in words: nothing of it is paid for. */
export function FoundMarks({ file, others }: { file: DraftFile; others: number }) {
  const t = useText(removeTexts);
  const { asset } = file;
  if (asset === null || file.error !== null) return null;
  const media = asset.media_type;
  return (
    <Stack gap="xs" data-testid="found-marks">
      <Text size="sm" fw={600}>
        {t("marks")}
      </Text>
      <Detection file={file} asset={asset} />
      {(media === "IMAGE" || media === "VIDEO") && others > 0 && isMarked(file.drawing) && (
        <Button size="xs" variant="default" onClick={() => copyDrawing(file)}>
          {t("sameMask", { n: others })}
        </Button>
      )}
    </Stack>
  );
}

/** Looks for marks as soon as the file is seen, once. */
function Detection({ file, asset }: { file: DraftFile; asset: AssetOut }) {
  const t = useText(removeTexts);
  const [refused, setRefused] = useState(false);
  const { key, detection, regions } = file;
  useEffect(() => {
    if (detection !== null || regions !== null) return;
    let left = false;
    const path = { asset_id: asset.id };
    const options = { params: { path }, headers: { "Idempotency-Key": `detect-${asset.id}` }, body: {} };
    data(api.POST("/v1/assets/{asset_id}/detect", options)).then(
      (task) => !left && setDetection(key, task.id),
      () => !left && setRefused(true), // by a limit, or a password: the order looks for itself
    );
    return () => {
      left = true;
    };
  }, [asset.id, key, detection, regions]);
  if (regions !== null) return <Listed file={file} regions={regions} slides={asset.media_type === "PPT"} />;
  if (refused) return <Hint>{t("lookedForLater")}</Hint>;
  return (
    <>
      {detection !== null && <Awaited key={detection} file={file} taskId={detection} />}
      <Group gap="xs" role="status">
        <Loader size="xs" />
        <Text size="sm">{t("looking")}</Text>
      </Group>
    </>
  );
}

function Awaited({ file, taskId }: { file: DraftFile; taskId: string }) {
  const task = useLiveTask(taskId).data;
  const { key } = file;
  useEffect(() => {
    if (!task || !isOver(task.status)) return;
    const found = (task.result as { candidates?: CandidateOut[] } | null)?.candidates;
    if (found) setRegions(key, found);
    else if (task.status !== "SUCCEEDED") setRegions(key, []);
  }, [task, key]);
  return null;
}

function Listed({ file, regions, slides }: { file: DraftFile; regions: readonly CandidateOut[]; slides: boolean }) {
  const t = useText(removeTexts);
  const [open, setOpen] = useState(slides);
  if (regions.length === 0) return <Hint>{slides ? t("nothingFound") : t("nothingFoundDraw")}</Hint>;
  const n = file.chosen.length;
  return (
    <>
      <Text size="sm" role="status">
        {n === 0 && !isMarked(file.drawing)
          ? t("chooseOne")
          : n === 1 && regions.length === 1
            ? t("foundOne")
            : t("chosenOf", { n, of: regions.length })}
      </Text>
      <Hint>{t(slides ? "clickOnly" : "clickToSwitch")}</Hint>
      {regions.length > 1 && (
        <Anchor
          component="button"
          type="button"
          size="sm"
          ta="left"
          onClick={() => setOpen(!open)}
          aria-expanded={open}
        >
          {open ? t("hideList") : t("showList")}
        </Anchor>
      )}
      {(open || regions.length === 1) && (
        <div className={classes.list}>
          <CandidateList
            candidates={regions}
            chosen={file.chosen}
            slides={slides}
            onChange={(chosen) => setChosen(file.key, chosen)}
          />
        </div>
      )}
    </>
  );
}

function Hint({ children }: { children: React.ReactNode }) {
  return (
    <Text size="sm" c="dimmed">
      {children}
    </Text>
  );
}
