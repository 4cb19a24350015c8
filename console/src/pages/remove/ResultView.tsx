import { useQuery } from "@tanstack/react-query";
import { useEffect, useState } from "react";
import { api, data, keys, type RemovalOut, type ResultOut } from "../../api";
import { Empty, IconPresentation, Loading, ProblemAlert } from "../../components";
import { useText } from "../../i18n";
import { CompareSlider } from "./CompareSlider";
import { frameSeconds } from "./frames";
import { MissingPicture } from "./MissingPicture";
import { compareUrl, contentUrl, isShown, previewUrl, resultPreviewUrl, resultUrl, type Size } from "./media";
import { PagesView } from "./PagesView";
import { removalTexts } from "./remove.texts";
import { spans } from "./spans";
import { shownAsFound } from "./suspects";
import { VideoView } from "./VideoView";

export function useResult(taskId: string, enabled = true) {
  return useQuery({
    enabled,
    queryKey: keys.results(taskId),
    queryFn: () => data(api.GET("/v1/tasks/{task_id}/result", { params: { path: { task_id: taskId } } })),
    staleTime: 60_000,
  });
}

/** Before and after, as well as this kind of file can be shown. */
export function ResultView({ removal }: { removal: RemovalOut }) {
  const result = useResult(removal.id);
  if (result.error) return <ProblemAlert error={result.error} onRetry={() => void result.refetch()} />;
  if (!result.data) return <Loading />;
  if (removal.media_type === "IMAGE") return <Pictures removal={removal} result={result.data} />;
  if (removal.media_type === "VIDEO") return <Clips removal={removal} />;
  const otherwise = removal.media_type === "PDF" ? <NoPicture /> : <Slides removal={removal} />;
  return <PagesView removal={removal} result={result.data} otherwise={otherwise} />;
}

function Clips({ removal }: { removal: RemovalOut }) {
  const path = { asset_id: removal.asset_id };
  const asset = useQuery({
    queryKey: keys.assets.one(removal.asset_id),
    queryFn: () => data(api.GET("/v1/assets/{asset_id}", { params: { path } })),
  });
  return (
    <VideoView
      frame={frameSeconds(asset.data?.meta)}
      before={contentUrl(removal.asset_id)}
      after={resultUrl(removal.id)}
      boxes={removal.candidates.map(({ box }) => box)}
      other={<Halves url={compareUrl(removal.id)} />}
    />
  );
}

function NoPicture() {
  const t = useText(removalTexts);
  return <Empty title={t("noPicture")} />;
}

function Pictures({ removal, result }: { removal: RemovalOut; result: ResultOut }) {
  const t = useText(removalTexts);
  const whole = isShown(result.mime_type ?? "");
  const after = whole ? resultUrl(removal.id) : resultPreviewUrl(removal.id);
  const size = useNaturalSize(after);
  const [before, setBefore] = useState(whole ? contentUrl(removal.asset_id) : previewUrl(removal.asset_id));
  useEffect(() => {
    // A HEIC becomes a JPEG, which is shown; the original is not.
    const image = new Image();
    image.onerror = () => setBefore(previewUrl(removal.asset_id));
    image.src = contentUrl(removal.asset_id);
  }, [removal.asset_id]);
  if (size === null) return <Loading />;
  if (size === "none") return <MissingPicture url={after} />;
  return (
    <CompareSlider
      before={<img src={before} alt={t("before")} draggable={false} />}
      after={<img src={after} alt={t("after")} draggable={false} />}
      size={size}
      boxes={whole ? removal.candidates.map(({ box }) => box) : []}
    />
  );
}

/** The size of a loaded picture; while the next one loads, that of the last. */
export function useNaturalSize(url: string): Size | "none" | null {
  const [size, setSize] = useState<Size | "none" | null>(null);
  useEffect(() => {
    const image = new Image();
    image.onerror = () => setSize("none");
    image.onload = () => {
      const found = { width: image.naturalWidth, height: image.naturalHeight };
      setSize((before) => (isSame(before, found) ? before : found));
    };
    image.src = url;
    return () => {
      image.onload = image.onerror = null; // of a page that is left already
    };
  }, [url]);
  return size;
}

function isSame(one: Size | "none" | null, other: Size): boolean {
  return one !== null && one !== "none" && one.width === other.width && one.height === other.height;
}

/** What is one picture of two halves, the changed part before and after: frames of a film that no browser plays, or a
 * result that was held back. */
export function Halves({ url }: { url: string }) {
  const t = useText(removalTexts);
  const [found, setFound] = useState<{ before: string; after: string; size: Size } | "none" | null>(null);
  useEffect(() => {
    const image = new Image();
    image.onload = () => {
      const size = { width: Math.floor(image.naturalWidth / 2), height: image.naturalHeight };
      setFound({ before: half(image, size, 0), after: half(image, size, size.width), size });
    };
    image.onerror = () => setFound("none");
    image.src = url;
  }, [url]);
  if (found === null) return <Loading />;
  if (found === "none") return <MissingPicture url={url} />;
  const { before, after, size } = found;
  return (
    <CompareSlider
      before={<img src={before} alt={t("before")} draggable={false} />}
      after={<img src={after} alt={t("after")} draggable={false} />}
      size={size}
      boxes={[]}
    />
  );
}

function half(image: HTMLImageElement, size: Size, from: number): string {
  const canvas = document.createElement("canvas");
  Object.assign(canvas, size);
  canvas.getContext("2d")?.drawImage(image, from, 0, size.width, size.height, 0, 0, size.width, size.height);
  return canvas.toDataURL("image/jpeg", 0.92);
}

/** Where slides are not drawn, for want of LibreOffice: what was taken off, and where, is said instead. */
function Slides({ removal }: { removal: RemovalOut }) {
  const t = useText(removalTexts);
  const slides = [...new Set(shownAsFound(removal.candidates).flatMap(({ pages }) => pages ?? []))];
  return (
    <Empty
      icon={IconPresentation}
      title={slides.length > 0 ? t("offSlides", { slides: spans(slides) }) : t("offDeck")}
      text={t("noSlides")}
    />
  );
}
