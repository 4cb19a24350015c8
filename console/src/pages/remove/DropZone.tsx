import { Anchor, Button, FileButton, Text } from "@mantine/core";
import { type DragEvent, useEffect, useState } from "react";
import { IconPlus, IconUpload } from "../../components";
import { useText } from "../../i18n";
import classes from "./DropZone.module.css";
import { removeTexts } from "./remove.texts";
import { readSample } from "./sample";

const ACCEPT = "image/*,video/*,application/pdf,.pptx,.ppt,.heic,.heif,.mkv";

/** Where files come in: dropped anywhere on the page, pasted, or chosen. */
export function DropZone({ onFiles, small }: { onFiles: (files: File[]) => void; small: boolean }) {
  const t = useText(removeTexts);
  const [over, setOver] = useState(false);
  useEffect(() => {
    const paste = (event: ClipboardEvent) => {
      const files = [...(event.clipboardData?.files ?? [])];
      if (files.length === 0) return;
      event.preventDefault();
      onFiles(files);
    };
    // A file that misses the zone by a hair must not replace the page.
    const missed = (event: globalThis.DragEvent) => {
      event.preventDefault();
      if (event.type === "drop" && event.dataTransfer?.files.length) onFiles([...event.dataTransfer.files]);
      setOver(event.type === "dragover");
    };
    const left = (event: globalThis.DragEvent) => {
      if (event.relatedTarget === null) setOver(false);
    };
    document.addEventListener("paste", paste);
    document.addEventListener("dragover", missed);
    document.addEventListener("drop", missed);
    document.addEventListener("dragleave", left);
    return () => {
      document.removeEventListener("paste", paste);
      document.removeEventListener("dragover", missed);
      document.removeEventListener("drop", missed);
      document.removeEventListener("dragleave", left);
    };
  }, [onFiles]);
  const stop = (event: DragEvent) => event.preventDefault();
  const choose = (files: File[]) => {
    if (files.length) onFiles(files);
  };
  const example = async () => onFiles([await readSample(t("exampleName"))]);
  if (small) {
    return (
      <div className={classes.small} data-over={over || undefined}>
        <FileButton onChange={choose} accept={ACCEPT} multiple>
          {(props) => (
            <Button variant="default" leftSection={<IconPlus size={16} />} {...props}>
              {over ? t("dropNow") : t("addMore")}
            </Button>
          )}
        </FileButton>
      </div>
    );
  }
  return (
    // biome-ignore lint/a11y/noStaticElementInteractions: the button is the alternative to dragging
    <div className={classes.zone} data-over={over || undefined} onDragOver={stop}>
      <div className={classes.icon}>
        <IconUpload size={34} />
      </div>
      <Text fw={600} fz="lg">
        {over ? t("dropNow") : t("drop")}
      </Text>
      <Text size="sm" c="dimmed" ta="center">
        {t("kinds")}
      </Text>
      <FileButton onChange={choose} accept={ACCEPT} multiple>
        {(props) => (
          <Button mt="xs" {...props}>
            {t("browse")}
          </Button>
        )}
      </FileButton>
      <Text size="sm" c="dimmed" ta="center">
        {t("noFile")}{" "}
        <Anchor component="button" type="button" size="sm" underline="always" onClick={() => void example()}>
          {t("example")}
        </Anchor>
      </Text>
    </div>
  );
}
