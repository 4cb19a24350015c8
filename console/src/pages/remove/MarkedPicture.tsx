import { Text } from "@mantine/core";
import { useQuery } from "@tanstack/react-query";
import { useEffect, useState } from "react";
import { type AssetOut, api, type CandidateOut, data, keys, type RemovalOut } from "../../api";
import { Loading } from "../../components";
import { useText } from "../../i18n";
import classes from "./MarkedPicture.module.css";
import { MissingPicture } from "./MissingPicture";
import { contentUrl, isShown, metaOf, pageUrl, previewUrl, type Size, sizeOf } from "./media";
import { PagePicker } from "./PagesView";
import { removalTexts } from "./remove.texts";

/** The original of a removal with boxes around what may be the mark; the chosen ones stand out. */
export function MarkedPicture({
  removal,
  chosen,
  onToggle,
}: {
  removal: RemovalOut;
  chosen: readonly number[];
  onToggle?: (id: number) => void;
}) {
  const asset = useQuery({
    queryKey: keys.assets.one(removal.asset_id),
    queryFn: () => data(api.GET("/v1/assets/{asset_id}", { params: { path: { asset_id: removal.asset_id } } })),
  });
  if (asset.error) return null;
  if (!asset.data) return <Loading />;
  return <MarkedAsset asset={asset.data} candidates={removal.candidates} chosen={chosen} onToggle={onToggle} />;
}

/** A file with boxes around the candidates; of documents one page at a time. */
export function MarkedAsset({
  asset,
  candidates,
  chosen,
  onToggle,
}: {
  asset: AssetOut;
  candidates: readonly CandidateOut[];
  chosen: readonly number[];
  /** A click on a box switches it; the list beside says the same for the keyboard. */
  onToggle?: ((id: number) => void) | undefined;
}) {
  const first = candidates.flatMap((each) => each.pages ?? []).sort((a, b) => a - b)[0] ?? 1;
  const [page, setPage] = useState(first);
  const pages = metaOf(asset).pages ?? 1;
  const size = sizeOf(asset);
  if (asset.media_type !== "PDF" && asset.media_type !== "PPT") {
    const url = isShown(asset.mime_type) ? contentUrl(asset.id) : previewUrl(asset.id);
    return (
      <Marked url={url} name={asset.name} size={size} candidates={candidates} chosen={chosen} onToggle={onToggle} />
    );
  }
  const here = candidates.filter((each) => !each.pages?.length || each.pages.includes(page));
  return (
    <>
      <Drawn key={asset.id} url={pageUrl(asset.id, page)} slides={asset.media_type === "PPT"}>
        {(url, shape) => (
          // Boxes are in points of the first page: on a page of another shape they would be elsewhere.
          <Marked
            url={url}
            name={asset.name}
            size={size ?? shape}
            shape={shape}
            candidates={isAlike(size, shape) ? here : []}
            chosen={chosen}
            onToggle={onToggle}
          />
        )}
      </Drawn>
      {pages > 1 && <PagePicker page={page} pages={pages} onChange={setPage} />}
    </>
  );
}

const isAlike = (one: Size | null, other: Size) =>
  one !== null && Math.abs(one.height / one.width - other.height / other.width) < 0.01;

/** A page once it is drawn, which takes a moment; where slides are not, that is said. */
function Drawn({
  url,
  slides,
  children,
}: {
  url: string;
  slides: boolean;
  children: (url: string, size: Size) => React.ReactNode;
}) {
  const t = useText(removalTexts);
  const [drawn, setDrawn] = useState<{ url: string; size: Size } | null>(null);
  const [failed, setFailed] = useState(false);
  useEffect(() => {
    const image = new Image();
    image.onload = () => {
      setFailed(false);
      setDrawn({ url, size: { width: image.naturalWidth, height: image.naturalHeight } });
    };
    image.onerror = () => setFailed(true);
    image.src = url;
    return () => {
      image.onload = image.onerror = null;
    };
  }, [url]);
  if (failed) {
    return (
      <Text size="sm" c="dimmed">
        {t(slides ? "slidesByShapes" : "noPage")}
      </Text>
    );
  }
  return drawn === null ? <Loading /> : children(drawn.url, drawn.size);
}

function Marked({
  url,
  name,
  size,
  shape = size,
  candidates,
  chosen,
  onToggle,
}: {
  url: string;
  name: string;
  /** In whose units the boxes are. */
  size: Size | null;
  shape?: Size | null;
  candidates: readonly CandidateOut[];
  chosen: readonly number[];
  onToggle?: ((id: number) => void) | undefined;
}) {
  const [broken, setBroken] = useState<string | null>(null);
  if (broken === url) return <MissingPicture url={url} />;
  return (
    <div
      className={classes.picture}
      style={
        shape
          ? {
              aspectRatio: `${shape.width} / ${shape.height}`,
              width: `min(100%, calc(60vh * ${shape.width / shape.height}))`,
            }
          : {}
      }
    >
      <img src={url} alt={name} onError={() => setBroken(url)} />
      {size && (
        <svg viewBox={`0 0 ${size.width} ${size.height}`} aria-hidden="true">
          {candidates.map((each) => (
            <g key={each.id} data-chosen={chosen.includes(each.id) || undefined}>
              {/* biome-ignore lint/a11y/noStaticElementInteractions: the list beside has a checkbox for each */}
              <rect
                x={each.box[0]}
                y={each.box[1]}
                width={each.box[2]}
                height={each.box[3]}
                onClick={onToggle && (() => onToggle(each.id))}
              />
            </g>
          ))}
        </svg>
      )}
    </div>
  );
}
