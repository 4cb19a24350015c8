import { type RefObject, useCallback, useEffect, useRef, useState } from "react";
import { effective, type Stroke } from "./drawing";
import { loadImages, paintStroke } from "./paint";

const LONGEST_SIDE = 2400;

/** The canvas above the picture: redraws all strokes when their list changes, and the current one while it is drawn. */
export function useCanvas(width: number, height: number, strokes: readonly Stroke[], colour: string) {
  const ref = useRef<HTMLCanvasElement>(null);
  const [version, setVersion] = useState(0);
  const images = useRef<Map<string, CanvasImageSource>>(new Map());
  // A picture of fifty megapixels needs no mask of as many to be looked at.
  const factor = Math.min(1, LONGEST_SIDE / Math.max(width, height, 1));
  const context = useCallback(() => {
    const found = ref.current?.getContext("2d") ?? null;
    found?.setTransform(factor, 0, 0, factor, 0, 0);
    return found;
  }, [factor]);
  // biome-ignore lint/correctness/useExhaustiveDependencies: a new version is what draws it again
  useEffect(() => {
    let over = false;
    const draw = () => {
      const target = context();
      if (!target || over) return;
      target.save();
      target.setTransform(1, 0, 0, 1, 0, 0);
      target.clearRect(0, 0, target.canvas.width, target.canvas.height);
      target.restore();
      for (const stroke of effective(strokes)) paintAt(target, stroke, colour, images.current, width, height);
    };
    draw();
    if (strokes.some((stroke) => stroke.kind === "image" && !images.current.has(stroke.url))) {
      void loadImages(strokes).then((found) => {
        images.current = found;
        draw();
      });
    }
    return () => {
      over = true;
    };
  }, [strokes, colour, width, height, context, version]);
  const drawNow = useCallback(
    (stroke: Stroke) => {
      const target = context();
      if (target) paintStroke(target, stroke, colour, images.current);
    },
    [context, colour],
  );
  /** What was drawn of a stroke that is none after all goes. */
  const redraw = useCallback(() => setVersion((before) => before + 1), []);
  return { ref: ref as RefObject<HTMLCanvasElement | null>, factor, drawNow, redraw };
}

function paintAt(
  target: CanvasRenderingContext2D,
  stroke: Stroke,
  colour: string,
  images: ReadonlyMap<string, CanvasImageSource>,
  width: number,
  height: number,
): void {
  const image = stroke.kind === "image" ? images.get(stroke.url) : undefined;
  if (stroke.kind !== "image") paintStroke(target, stroke, colour, images);
  else if (image) target.drawImage(tinted(image as HTMLCanvasElement, colour), 0, 0, width, height);
}

/** A mask that was loaded is white: here it gets the colour of the rest. */
function tinted(mask: HTMLCanvasElement, colour: string): CanvasImageSource {
  const canvas = document.createElement("canvas");
  canvas.width = mask.width;
  canvas.height = mask.height;
  const context = canvas.getContext("2d");
  if (context === null) return mask;
  context.drawImage(mask, 0, 0);
  context.globalCompositeOperation = "source-in";
  context.fillStyle = colour;
  context.fillRect(0, 0, canvas.width, canvas.height);
  return canvas;
}
