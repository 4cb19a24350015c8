import { ActionIcon, Text } from "@mantine/core";
import { IconAlertTriangle, IconBrush, IconCheck, IconX } from "../../components";
import { formats, useLanguage, useText } from "../../i18n";
import { type DraftFile, removeFile } from "./draft";
import classes from "./FileStrip.module.css";
import { isMarked } from "./mask/drawing";
import { kindOf, metaOf, previewUrl } from "./media";
import { isReady } from "./order";
import { removeTexts } from "./remove.texts";
import { Thumbnail } from "./Thumbnail";

/** Which of several files is seen. */
export function FileStrip({
  files,
  current,
  onChange,
}: {
  files: readonly DraftFile[];
  current: DraftFile;
  onChange: (key: string) => void;
}) {
  const t = useText(removeTexts);
  return (
    <nav className={classes.strip} aria-label={t("files")}>
      {files.map((file) => (
        <button
          key={file.key}
          type="button"
          className={classes.file}
          aria-current={file.key === current.key}
          aria-label={file.name}
          data-testid="draft-file"
          onClick={() => onChange(file.key)}
        >
          <Thumbnail
            src={file.asset ? previewUrl(file.asset.id) : file.local}
            kind={file.asset?.media_type ?? kindOf(file.name)}
          />
          <State file={file} />
        </button>
      ))}
    </nav>
  );
}

function State({ file }: { file: DraftFile }) {
  if (file.error !== null) {
    return (
      <span className={classes.state} data-state="bad">
        <IconAlertTriangle size={14} />
      </span>
    );
  }
  if (file.asset === null) return null;
  const Drawn = isMarked(file.drawing) ? IconBrush : isReady(file) ? IconCheck : IconAlertTriangle;
  return (
    <span className={classes.state} data-state={isReady(file) ? "good" : "bad"}>
      <Drawn size={14} />
    </span>
  );
}

/** The name of the file that is seen, and what is known of it. */
export function FileHead({ file }: { file: DraftFile }) {
  const t = useText(removeTexts);
  const language = useLanguage();
  const meta = file.asset ? metaOf(file.asset) : {};
  const facts = [
    formats.bytes(file.size),
    meta.width && meta.height ? t("size", { width: `${meta.width}`, height: `${meta.height}` }) : null,
    meta.pages ? t(file.asset?.media_type === "PPT" ? "slides" : "pages", { n: meta.pages }) : null,
    meta.duration_ms ? formats.duration(meta.duration_ms, language) : null,
  ].filter(Boolean);
  return (
    <div className={classes.head}>
      <div className={classes.name}>
        <Text fw={600} size="sm" span>
          {file.name}
        </Text>{" "}
        <Text size="sm" c="dimmed" span>
          {facts.join(" · ")}
        </Text>
      </div>
      <ActionIcon
        variant="subtle"
        color="gray"
        aria-label={t("removeFile", { name: file.name })}
        onClick={() => removeFile(file.key)}
      >
        <IconX size={16} />
      </ActionIcon>
    </div>
  );
}
