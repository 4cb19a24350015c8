import { useQuery } from "@tanstack/react-query";
import { api, data, type RemovalOut } from "../../api";
import { Loading } from "../../components";
import classes from "./MarkedPicture.module.css";
import { contentUrl, isShown, previewUrl, sizeOf } from "./media";

/** The original with boxes around what may be the mark; the chosen ones stand out. */
export function MarkedPicture({ removal, chosen }: { removal: RemovalOut; chosen: readonly number[] }) {
  const asset = useQuery({
    queryKey: ["assets", removal.asset_id],
    queryFn: () => data(api.GET("/v1/assets/{asset_id}", { params: { path: { asset_id: removal.asset_id } } })),
  });
  if (asset.error) return null;
  if (!asset.data) return <Loading />;
  const size = sizeOf(asset.data);
  const url = isShown(asset.data.mime_type) ? contentUrl(asset.data.id) : previewUrl(asset.data.id);
  return (
    <div className={classes.picture} style={size ? { aspectRatio: `${size.width} / ${size.height}` } : {}}>
      <img src={url} alt={asset.data.name} />
      {size && (
        <svg viewBox={`0 0 ${size.width} ${size.height}`} aria-hidden="true">
          {removal.candidates
            .filter((each) => !each.pages?.length || each.pages.includes(1))
            .map((each) => (
              <g key={each.id} data-chosen={chosen.includes(each.id) || undefined}>
                <rect x={each.box[0]} y={each.box[1]} width={each.box[2]} height={each.box[3]} />
              </g>
            ))}
        </svg>
      )}
    </div>
  );
}
