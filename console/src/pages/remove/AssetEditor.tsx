import { Group, SegmentedControl, Slider, Text } from "@mantine/core";
import { useEffect, useRef, useState } from "react";
import type { AssetOut, CandidateOut } from "../../api";
import { Loading } from "../../components";
import { useText } from "../../i18n";
import type { MaskDrawing } from "./mask/drawing";
import { MaskEditor, type Region } from "./mask/MaskEditor";
import { maskTexts } from "./mask/mask.texts";
import { contentUrl, isShown, metaOf, pageUrl, previewUrl, type Size, sizeOf } from "./media";
import { PagePicker } from "./PagesView";
import { clock } from "./VideoView";

interface Props {
  readonly asset: AssetOut;
  readonly initial: MaskDrawing | null;
  /** Hears of every stroke. */
  readonly onChange?: ((drawing: MaskDrawing) => void) | undefined;
  readonly onUse?: ((drawing: MaskDrawing) => void) | undefined;
  readonly useLabel?: string | undefined;
  readonly onCancel?: (() => void) | undefined;
  readonly onEnlarge?: (() => void) | undefined;
  /** What was found, and which of it is to go. */
  readonly found?: readonly CandidateOut[] | undefined;
  readonly chosen?: readonly number[] | undefined;
  readonly onToggle?: ((id: number) => void) | undefined;
}

/** The picture, frame or page of a file to draw on, with what was found. */
export function AssetEditor({ asset, ...props }: Props) {
  if (asset.media_type === "VIDEO") return <VideoEditor asset={asset} {...props} />;
  if (asset.media_type === "PDF") return <PageEditor asset={asset} {...props} />;
  return <PictureEditor asset={asset} {...props} />;
}

function regionsOf(found: readonly CandidateOut[] | undefined, chosen: readonly number[] = []): Region[] | undefined {
  return found?.map(({ id, box }) => ({ id, box, on: chosen.includes(id) }));
}

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

function PictureEditor({ asset, found, chosen, ...props }: Props) {
  const picture = usePicture(asset);
  if (picture === null) return <Loading />;
  const { width, height } = picture.size;
  return (
    <MaskEditor picture={picture.url} width={width} height={height} regions={regionsOf(found, chosen)} {...props} />
  );
}

function PageEditor({ asset, initial, found, chosen, ...props }: Props) {
  const t = useText(maskTexts);
  const pages = metaOf(asset).pages ?? 1;
  const size = sizeOf(asset);
  const own = initial?.strokes.flatMap((stroke) => ("page" in stroke && stroke.page ? [stroke.page] : [])) ?? [];
  const [page, setPage] = useState(own.length > 0 ? Math.min(...own) : 1);
  const [only, setOnly] = useState(own.length > 0);
  if (size === null) return <Loading />;
  return (
    <MaskEditor
      picture={pageUrl(asset.id, page)}
      width={Math.round(size.width)}
      height={Math.round(size.height)}
      initial={initial}
      boxesOnly
      page={{ number: page, only: only && pages > 1 }}
      regions={regionsOf(
        found?.filter((each) => !each.pages?.length || each.pages.includes(page)),
        chosen,
      )}
      {...props}
      extra={
        pages > 1 && (
          <Group gap="md" justify="space-between">
            <Group gap="xs">
              <Text size="sm">{t("boxesFor")}</Text>
              <SegmentedControl
                size="xs"
                aria-label={t("boxesFor")}
                value={only ? "this" : "all"}
                onChange={(value) => setOnly(value === "this")}
                data={[
                  { value: "all", label: t("allPages") },
                  { value: "this", label: t("thisPage") },
                ]}
              />
            </Group>
            <PagePicker page={page} pages={pages} onChange={setPage} />
          </Group>
        )
      }
    />
  );
}

function VideoEditor({ asset, found, chosen, ...props }: Props) {
  const t = useText(maskTexts);
  const video = useRef<HTMLVideoElement>(null);
  const [length, setLength] = useState((metaOf(asset).duration_ms ?? 0) / 1000);
  const [at, setAt] = useState(0);
  const [frame, setFrame] = useState<{ url: string; size: Size } | null>(null);
  const [unplayable, setUnplayable] = useState(false);
  const take = () => {
    const element = video.current;
    if (!element?.videoWidth) return;
    const canvas = document.createElement("canvas");
    const size = { width: element.videoWidth, height: element.videoHeight };
    Object.assign(canvas, size);
    canvas.getContext("2d")?.drawImage(element, 0, 0);
    canvas.toBlob((blob) => blob && setFrame({ url: URL.createObjectURL(blob), size }), "image/jpeg", 0.9);
  };
  const url = frame?.url;
  useEffect(() => () => void (url && URL.revokeObjectURL(url)), [url]);
  const cannotPlay = () => {
    const size = sizeOf(asset);
    setUnplayable(true);
    if (size) setFrame((before) => before ?? { url: previewUrl(asset.id), size });
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
        onError={cannotPlay}
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
          regions={regionsOf(found, chosen)}
          {...props}
          extra={
            unplayable ? (
              <Text size="sm" c="dimmed">
                {t("cannotPlay")} {t("allFrames")}
              </Text>
            ) : (
              <Group gap="md" wrap="nowrap">
                <Text size="sm">{t("frame")}</Text>
                <Slider
                  flex={1}
                  min={0}
                  max={length}
                  step={0.04}
                  value={at}
                  label={null}
                  thumbLabel={t("frame")}
                  onChange={(value) => {
                    setAt(value);
                    if (video.current) video.current.currentTime = value;
                  }}
                />
                <Text size="sm" className="figures" style={{ whiteSpace: "nowrap" }}>
                  {clock(at)} / {clock(length)}
                </Text>
                <Text size="sm" c="dimmed" visibleFrom="xs">
                  {t("allFrames")}
                </Text>
              </Group>
            )
          }
        />
      )}
    </>
  );
}
