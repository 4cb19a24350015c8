import { useQuery } from "@tanstack/react-query";
import { useEffect, useState } from "react";
import { api, data, type RemovalOut, type ResultOut } from "../../api";
import { Empty, IconFileText, Loading, ProblemAlert } from "../../components";
import { useText } from "../../i18n";
import { CompareSlider } from "./CompareSlider";
import { compareUrl, contentUrl, isShown, previewUrl, resultPreviewUrl, resultUrl, type Size } from "./media";
import classes from "./RemovalPage.module.css";
import { removalTexts } from "./remove.texts";

export function useResult(taskId: string) {
  return useQuery({
    queryKey: ["results", taskId],
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
  if (removal.media_type === "VIDEO") return <Video taskId={removal.id} />;
  return <Halves taskId={removal.id} />;
}

function Pictures({ removal, result }: { removal: RemovalOut; result: ResultOut }) {
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
  return (
    <CompareSlider
      before={before}
      after={after}
      size={size}
      boxes={whole ? removal.candidates.map(({ box }) => box) : []}
    />
  );
}

function useNaturalSize(url: string): Size | null {
  const [size, setSize] = useState<Size | null>(null);
  useEffect(() => {
    const image = new Image();
    image.onload = () => setSize({ width: image.naturalWidth, height: image.naturalHeight });
    image.src = url;
  }, [url]);
  return size;
}

/** Documents come as one picture of two halves: the changed part before, and after. */
function Halves({ taskId }: { taskId: string }) {
  const t = useText(removalTexts);
  const [found, setFound] = useState<{ before: string; after: string; size: Size } | "none" | null>(null);
  useEffect(() => {
    const image = new Image();
    image.onload = () => {
      const size = { width: Math.floor(image.naturalWidth / 2), height: image.naturalHeight };
      setFound({ before: half(image, size, 0), after: half(image, size, size.width), size });
    };
    image.onerror = () => setFound("none");
    image.src = compareUrl(taskId);
  }, [taskId]);
  if (found === null) return <Loading />;
  if (found === "none") {
    return (
      <div>
        <div className={classes.picture}>
          <img src={resultPreviewUrl(taskId)} alt={t("after")} />
        </div>
        <Empty icon={IconFileText} title={t("noPicture")} />
      </div>
    );
  }
  return <CompareSlider {...found} boxes={[]} />;
}

function half(image: HTMLImageElement, size: Size, from: number): string {
  const canvas = document.createElement("canvas");
  Object.assign(canvas, size);
  canvas.getContext("2d")?.drawImage(image, from, 0, size.width, size.height, 0, 0, size.width, size.height);
  return canvas.toDataURL("image/jpeg", 0.92);
}

/** The changed frames beside each other where there are some, and the film itself. */
function Video({ taskId }: { taskId: string }) {
  return (
    <div>
      <Halves taskId={taskId} />
      {/* biome-ignore lint/a11y/useMediaCaption: nobody knows what is said in it */}
      <video src={resultUrl(taskId)} controls style={{ width: "100%", marginTop: 16, borderRadius: 8 }} />
    </div>
  );
}
