import { Group, Modal, NumberInput, Slider, Switch, Text } from "@mantine/core";
import { useEffect, useRef, useState } from "react";
import type { AssetOut } from "../../api";
import { commonTexts, Loading } from "../../components";
import { useText } from "../../i18n";
import type { MaskDrawing } from "./mask/drawing";
import { MaskEditor } from "./mask/MaskEditor";
import { maskTexts } from "./mask/mask.texts";
import { contentUrl, isShown, metaOf, previewUrl, type Size, sizeOf } from "./media";

interface Props {
  readonly asset: AssetOut;
  readonly initial: MaskDrawing | null;
  readonly onUse: (drawing: MaskDrawing) => void;
  readonly onClose: () => void;
}

/** The editor over the whole window, with the picture, frame or page to draw on. */
export default function EditorDialog({ asset, initial, onUse, onClose }: Props) {
  const t = useText(maskTexts);
  const common = useText(commonTexts);
  return (
    <Modal
      opened
      onClose={onClose}
      fullScreen
      padding={0}
      title={<Text fw={650}>{t("titleFor", { name: asset.name })}</Text>}
      closeButtonProps={{ "aria-label": common("close") }}
      closeOnEscape={false}
      styles={{
        header: { padding: "6px 14px", minHeight: 44 },
        content: { display: "flex", flexDirection: "column" },
        body: { flex: 1, minHeight: 0 },
      }}
    >
      {asset.media_type === "VIDEO" ? (
        <VideoEditor asset={asset} initial={initial} onUse={onUse} onCancel={onClose} />
      ) : asset.media_type === "PDF" ? (
        <PageEditor asset={asset} initial={initial} onUse={onUse} onCancel={onClose} />
      ) : (
        <PictureEditor asset={asset} initial={initial} onUse={onUse} onCancel={onClose} />
      )}
    </Modal>
  );
}

type EditorProps = Omit<Props, "onClose"> & { readonly onCancel: () => void };

/** Load a picture, and tell its size as browsers show it: upright. */
function usePicture(asset: AssetOut): { url: string; size: Size } | null {
  const [found, setFound] = useState<{ url: string; size: Size } | null>(null);
  useEffect(() => {
    const url = isShown(asset.mime_type) ? contentUrl(asset.id) : previewUrl(asset.id);
    const image = new Image();
    image.onload = () => {
      const natural = { width: image.naturalWidth, height: image.naturalHeight };
      // A preview stands for a picture that browsers do not draw, in the picture's own size.
      setFound({ url, size: isShown(asset.mime_type) ? natural : (sizeOf(asset) ?? natural) });
    };
    image.src = url;
  }, [asset]);
  return found;
}

function PictureEditor({ asset, ...props }: EditorProps) {
  const picture = usePicture(asset);
  if (picture === null) return <Loading />;
  return <MaskEditor picture={picture.url} width={picture.size.width} height={picture.size.height} {...props} />;
}

function PageEditor({ asset, initial, onUse, onCancel }: EditorProps) {
  const t = useText(maskTexts);
  const pages = metaOf(asset).pages ?? 1;
  const size = sizeOf(asset);
  const [all, setAll] = useState(initial?.pages === undefined);
  const [span, setSpan] = useState<readonly [number, number]>(initial?.pages ?? [1, pages]);
  if (size === null) return <Loading />;
  return (
    <MaskEditor
      picture={previewUrl(asset.id)}
      width={Math.round(size.width)}
      height={Math.round(size.height)}
      initial={initial}
      boxesOnly
      onUse={(drawing) => onUse(all ? drawing : { ...drawing, pages: span })}
      onCancel={onCancel}
      extra={
        pages > 1 && (
          <Group gap="md">
            <Switch label={t("allPages")} checked={all} onChange={(event) => setAll(event.currentTarget.checked)} />
            {!all && (
              <Group gap={6}>
                <Text size="sm">{t("onlyPages")}</Text>
                <NumberInput
                  size="xs"
                  w={70}
                  min={1}
                  max={span[1]}
                  value={span[0]}
                  aria-label={t("onlyPages")}
                  onChange={(value) => setSpan([Number(value) || 1, span[1]])}
                />
                –
                <NumberInput
                  size="xs"
                  w={70}
                  min={span[0]}
                  max={pages}
                  value={span[1]}
                  aria-label={t("onlyPages")}
                  onChange={(value) => setSpan([span[0], Number(value) || pages])}
                />
              </Group>
            )}
          </Group>
        )
      }
    />
  );
}

function VideoEditor({ asset, initial, onUse, onCancel }: EditorProps) {
  const t = useText(maskTexts);
  const video = useRef<HTMLVideoElement>(null);
  const [length, setLength] = useState((metaOf(asset).duration_ms ?? 0) / 1000);
  const [at, setAt] = useState(0);
  const [frame, setFrame] = useState<{ url: string; size: Size } | null>(null);
  const take = () => {
    const element = video.current;
    if (!element?.videoWidth) return;
    const canvas = document.createElement("canvas");
    const size = { width: element.videoWidth, height: element.videoHeight };
    Object.assign(canvas, size);
    canvas.getContext("2d")?.drawImage(element, 0, 0);
    canvas.toBlob((blob) => blob && setFrame({ url: URL.createObjectURL(blob), size }), "image/jpeg", 0.9);
  };
  return (
    <>
      <video
        ref={video}
        src={contentUrl(asset.id)}
        muted
        playsInline
        preload="auto"
        hidden
        onLoadedMetadata={(event) => setLength(event.currentTarget.duration || length)}
        onLoadedData={take}
        onSeeked={take}
      />
      {frame === null ? (
        <Loading />
      ) : (
        <MaskEditor
          picture={frame.url}
          width={frame.size.width}
          height={frame.size.height}
          initial={initial}
          onUse={onUse}
          onCancel={onCancel}
          extra={
            <Group gap="md" wrap="nowrap">
              <Text size="sm">{t("frame")}</Text>
              <Slider
                flex={1}
                min={0}
                max={length}
                step={0.04}
                value={at}
                label={(value) => `${value.toFixed(1)} s`}
                thumbLabel={t("frame")}
                onChange={setAt}
                onChangeEnd={(value) => {
                  if (video.current) video.current.currentTime = value;
                }}
              />
              <Text size="sm" c="dimmed">
                {t("allFrames")}
              </Text>
            </Group>
          }
        />
      )}
    </>
  );
}
