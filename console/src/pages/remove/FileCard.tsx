import { ActionIcon, Button, Group, Progress, Stack, Text } from "@mantine/core";
import { lazy, Suspense, useState } from "react";
import { errorWords, IconBrush, IconCheck, IconX } from "../../components";
import { formats, useLanguage, useText } from "../../i18n";
import { CandidatePicker } from "./CandidatePicker";
import { type DraftFile, type Mode, removeFile, setChosen, setDrawing } from "./draft";
import classes from "./FileCard.module.css";
import shared from "./Files.module.css";
import { isMarked, type MaskDrawing } from "./mask/drawing";
import { kindOf, metaOf, previewUrl } from "./media";
import { removeTexts } from "./remove.texts";
import { Thumbnail } from "./Thumbnail";

const EditorDialog = lazy(() => import("./EditorDialog"));

/** A file that is about to be ordered: its progress, and the position of its mark if the user must mark it. */
export function FileCard({ file, mode }: { file: DraftFile; mode: Mode }) {
  const t = useText(removeTexts);
  const language = useLanguage();
  // What was drawn before the editor was opened: that is what giving up goes back to.
  const [editing, setEditing] = useState<{ before: MaskDrawing | null } | null>(null);
  const { asset } = file;
  const kind = asset?.media_type ?? kindOf(file.name);
  const marked = isMarked(file.drawing);
  return (
    <div className={shared.card} data-testid="draft-file">
      <Group wrap="nowrap" align="flex-start" gap="md">
        <Thumbnail src={asset ? previewUrl(asset.id) : file.local} kind={kind} />
        <Stack gap={4} className={shared.middle}>
          <Text fw={600} size="sm" className={shared.name}>
            {file.name}
          </Text>
          {file.error !== null ? (
            <Text size="sm" className={classes.bad} role="alert">
              {errorWords(file.error)}
            </Text>
          ) : (
            <State file={file} />
          )}
          {asset && mode === "MANUAL" && (
            <Group gap="xs" mt={4} align="flex-start">
              {kind !== "PPT" && (
                <Button
                  size="xs"
                  variant={marked ? "default" : "light"}
                  leftSection={marked ? <IconCheck size={14} /> : <IconBrush size={14} />}
                  onClick={() => setEditing({ before: file.drawing })}
                >
                  {marked ? `${t("marked")} · ${t("changeMask")}` : kind === "PDF" ? t("drawInstead") : t("mark")}
                </Button>
              )}
              {(kind === "PDF" || kind === "PPT") && !marked && (
                <CandidatePicker
                  asset={asset}
                  chosen={file.chosen}
                  onChange={(chosen) => setChosen(file.key, chosen)}
                />
              )}
            </Group>
          )}
        </Stack>
        <Text size="xs" c="dimmed" className={classes.size}>
          {formats.bytes(file.size)}
          {asset && <Facts file={file} />}
        </Text>
        <ActionIcon
          variant="subtle"
          color="gray"
          aria-label={t("removeFile", { name: file.name })}
          onClick={() => removeFile(file.key)}
        >
          <IconX size={16} />
        </ActionIcon>
      </Group>
      {asset === null && file.error === null && (
        <Progress
          value={(file.sent / Math.max(file.size, 1)) * 100}
          size="sm"
          mt="xs"
          aria-label={t("uploading", { percent: formats.percent(file.sent / Math.max(file.size, 1), language) })}
        />
      )}
      {editing && asset && (
        <Suspense>
          <EditorDialog
            asset={asset}
            initial={editing.before}
            onChange={(drawing) => setDrawing(file.key, drawing)}
            onUse={(drawing) => {
              setDrawing(file.key, drawing);
              setEditing(null);
            }}
            onClose={() => {
              setDrawing(file.key, editing.before);
              setEditing(null);
            }}
          />
        </Suspense>
      )}
    </div>
  );
}

function State({ file }: { file: DraftFile }) {
  const t = useText(removeTexts);
  const language = useLanguage();
  const share = file.sent / Math.max(file.size, 1);
  const words = file.asset
    ? t("ready")
    : share >= 1
      ? t("checking")
      : file.sent > 0
        ? t("uploading", { percent: formats.percent(share, language) })
        : t("waitingToUpload");
  return (
    <Text size="sm" className={file.asset ? classes.good : classes.dim}>
      {words}
    </Text>
  );
}

function Facts({ file }: { file: DraftFile }) {
  const t = useText(removeTexts);
  const language = useLanguage();
  if (!file.asset) return null;
  const meta = metaOf(file.asset);
  const facts = [
    meta.width && meta.height ? t("size", { width: `${meta.width}`, height: `${meta.height}` }) : null,
    meta.pages ? t(file.asset.media_type === "PPT" ? "slides" : "pages", { n: meta.pages }) : null,
    meta.duration_ms ? formats.duration(meta.duration_ms, language) : null,
  ].filter(Boolean);
  return facts.map((fact) => <span key={fact}>{fact}</span>);
}
