import { type Box, effective, type MaskDrawing, type Stroke } from "./drawing";

type Context = CanvasRenderingContext2D;

/** Draw strokes in one colour on a canvas of the picture's size; what was erased is transparent. */
export function paint(
  context: Context,
  strokes: readonly Stroke[],
  colour: string,
  images: ReadonlyMap<string, CanvasImageSource>,
): void {
  const { width, height } = context.canvas;
  context.clearRect(0, 0, width, height);
  for (const stroke of effective(strokes)) paintStroke(context, stroke, colour, images);
}

export function paintStroke(
  context: Context,
  stroke: Stroke,
  colour: string,
  images: ReadonlyMap<string, CanvasImageSource>,
): void {
  context.save();
  context.fillStyle = colour;
  context.strokeStyle = colour;
  switch (stroke.kind) {
    case "brush":
    case "eraser": {
      context.globalCompositeOperation = stroke.kind === "eraser" ? "destination-out" : "source-over";
      trace(context, stroke.points, stroke.size);
      break;
    }
    case "box":
      context.fillRect(...stroke.box);
      break;
    case "image": {
      const image = images.get(stroke.url);
      if (image) context.drawImage(image, 0, 0, context.canvas.width, context.canvas.height);
      break;
    }
    default:
      break; // areas to keep are shown above, not in the mask
  }
  context.restore();
}

function trace(context: Context, points: readonly { x: number; y: number }[], size: number): void {
  const [first, ...rest] = points;
  if (!first) return;
  context.lineWidth = size;
  context.lineCap = "round";
  context.lineJoin = "round";
  context.beginPath();
  context.moveTo(first.x, first.y);
  // A click alone is a dot.
  if (rest.length === 0) context.lineTo(first.x + 0.01, first.y);
  for (const point of rest) context.lineTo(point.x, point.y);
  context.stroke();
}

/** The mask as a file: white where the mark is, black elsewhere, of the picture's size. */
export async function maskFile(drawing: MaskDrawing, name: string): Promise<File> {
  const canvas = document.createElement("canvas");
  canvas.width = drawing.width;
  canvas.height = drawing.height;
  const context = canvas.getContext("2d", { willReadFrequently: true });
  if (context === null) throw new Error("no canvas");
  const images = await loadImages(drawing.strokes);
  paint(context, drawing.strokes, "#fff", images);
  for (const [left, top, width, height] of keeps(drawing)) context.clearRect(left, top, width, height);
  // Soft edges of strokes become hard: a pixel belongs to the mark or it does not.
  const pixels = context.getImageData(0, 0, canvas.width, canvas.height);
  for (let index = 0; index < pixels.data.length; index += 4) {
    const value = (pixels.data[index + 3] ?? 0) >= 128 ? 255 : 0;
    pixels.data[index] = pixels.data[index + 1] = pixels.data[index + 2] = value;
    pixels.data[index + 3] = 255;
  }
  context.putImageData(pixels, 0, 0);
  const blob = await new Promise<Blob | null>((resolve) => canvas.toBlob(resolve, "image/png"));
  if (blob === null) throw new Error("the mask could not be written");
  return new File([blob], name, { type: "image/png" });
}

function keeps(drawing: MaskDrawing): Box[] {
  return effective(drawing.strokes).flatMap((stroke) => (stroke.kind === "keep" ? [stroke.box] : []));
}

/** The pictures that strokes refer to, each as an overlay: opaque white where it is light, transparent elsewhere. */
export async function loadImages(strokes: readonly Stroke[]): Promise<Map<string, CanvasImageSource>> {
  const urls = new Set(strokes.flatMap((stroke) => (stroke.kind === "image" ? [stroke.url] : [])));
  const found = await Promise.all([...urls].map(async (url) => [url, await asOverlay(url)] as const));
  return new Map(found);
}

/** A mask from a file, kept as text so that it outlives a reload. */
export async function readMask(file: File): Promise<{ url: string; size: { width: number; height: number } }> {
  const url = await new Promise<string>((resolve, reject) => {
    const reader = new FileReader();
    reader.onload = () => resolve(reader.result as string);
    reader.onerror = () => reject(reader.error);
    reader.readAsDataURL(file);
  });
  const image = new Image();
  image.src = url;
  await image.decode();
  return { url, size: { width: image.naturalWidth, height: image.naturalHeight } };
}

async function asOverlay(url: string): Promise<CanvasImageSource> {
  const image = new Image();
  image.src = url;
  await image.decode();
  const canvas = document.createElement("canvas");
  canvas.width = image.naturalWidth;
  canvas.height = image.naturalHeight;
  const context = canvas.getContext("2d", { willReadFrequently: true });
  if (context === null) return image;
  context.drawImage(image, 0, 0);
  const pixels = context.getImageData(0, 0, canvas.width, canvas.height);
  for (let index = 0; index < pixels.data.length; index += 4) {
    const light = (pixels.data[index] ?? 0) >= 128 && (pixels.data[index + 3] ?? 0) >= 128;
    pixels.data[index] = pixels.data[index + 1] = pixels.data[index + 2] = 255;
    pixels.data[index + 3] = light ? 255 : 0;
  }
  context.putImageData(pixels, 0, 0);
  return canvas;
}
