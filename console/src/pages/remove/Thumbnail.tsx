import { useState } from "react";
import { type Icon, IconFileText, IconPhoto, IconPresentation, IconVideo } from "../../components";
import classes from "./Thumbnail.module.css";

const ICONS: Record<string, Icon> = { IMAGE: IconPhoto, VIDEO: IconVideo, PDF: IconFileText, PPT: IconPresentation };

/** A small picture of a file, or a sign for its kind where there is none. */
export function Thumbnail({ src, kind, size = 64 }: { src: string | null; kind: string; size?: number }) {
  const [broken, setBroken] = useState<string | null>(null);
  const Drawn = ICONS[kind] ?? IconPhoto;
  return (
    <div className={classes.thumbnail} style={{ width: size, height: size }}>
      {src && broken !== src ? (
        <img src={src} alt="" loading="lazy" onError={() => setBroken(src)} />
      ) : (
        <Drawn size={size / 2.4} />
      )}
    </div>
  );
}
