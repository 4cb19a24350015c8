// A drawing over a picture, as a list of strokes in the picture's own pixels. Everything else (what is shown,
// the mask that is sent, undo) is made from that list.

export interface Point {
  readonly x: number;
  readonly y: number;
}

/** Left, top, width, height. */
export type Box = readonly [number, number, number, number];

export type Stroke =
  | { readonly kind: "brush" | "eraser"; readonly size: number; readonly points: readonly Point[] }
  /** Of documents a box may be for one page; without a page it is for all of them. */
  | { readonly kind: "box" | "keep"; readonly box: Box; readonly page?: number }
  /** A mask that was loaded from a file or found by the server, as a picture. */
  | { readonly kind: "image"; readonly url: string }
  | { readonly kind: "clear" };

export interface MaskDrawing {
  readonly width: number;
  readonly height: number;
  readonly strokes: readonly Stroke[];
}

export interface History {
  readonly done: readonly Stroke[];
  readonly undone: readonly Stroke[];
}

export const EMPTY: History = { done: [], undone: [] };

export function add(history: History, stroke: Stroke): History {
  return { done: [...history.done, stroke], undone: [] };
}

export function undo(history: History): History {
  const last = history.done.at(-1);
  return last === undefined ? history : { done: history.done.slice(0, -1), undone: [...history.undone, last] };
}

export function redo(history: History): History {
  const last = history.undone.at(-1);
  return last === undefined ? history : { done: [...history.done, last], undone: history.undone.slice(0, -1) };
}

/** The strokes that count: what lies behind the last "clear". */
export function effective(strokes: readonly Stroke[]): readonly Stroke[] {
  const cleared = strokes.findLastIndex((stroke) => stroke.kind === "clear");
  return strokes.slice(cleared + 1);
}

/** Two corners, in any order, as a box of whole pixels within the picture; null if it has no area. */
export function boxBetween(a: Point, b: Point, width: number, height: number): Box | null {
  const left = Math.max(0, Math.floor(Math.min(a.x, b.x)));
  const top = Math.max(0, Math.floor(Math.min(a.y, b.y)));
  const right = Math.min(width, Math.ceil(Math.max(a.x, b.x)));
  const bottom = Math.min(height, Math.ceil(Math.max(a.y, b.y)));
  return right - left < 2 || bottom - top < 2 ? null : [left, top, right - left, bottom - top];
}

export function keepBoxes(drawing: MaskDrawing): Box[] {
  return effective(drawing.strokes).flatMap((stroke) => (stroke.kind === "keep" ? [stroke.box] : []));
}

export interface PlacedBoxes {
  /** Null: all pages. */
  readonly page: number | null;
  readonly boxes: readonly Box[];
  readonly keep: readonly Box[];
}

/** The boxes by the page they are for, those for all pages first. */
export function boxesByPage(drawing: MaskDrawing): PlacedBoxes[] {
  const found = new Map<number | null, { boxes: Box[]; keep: Box[] }>();
  for (const stroke of effective(drawing.strokes)) {
    if (stroke.kind !== "box" && stroke.kind !== "keep") continue;
    const page = stroke.page ?? null;
    const own = found.get(page) ?? { boxes: [], keep: [] };
    own[stroke.kind === "box" ? "boxes" : "keep"].push(stroke.box);
    found.set(page, own);
  }
  return [...found].map(([page, own]) => ({ page, ...own })).sort((a, b) => (a.page ?? 0) - (b.page ?? 0));
}

/** What of a document is seen on one of its pages. */
export function onPage(strokes: readonly Stroke[], page: number): readonly Stroke[] {
  return strokes.filter((stroke) => !("page" in stroke) || stroke.page === undefined || stroke.page === page);
}

/** The boxes alone, if nothing was drawn but boxes: then the server looks for the mark within them. */
export function onlyBoxes(drawing: MaskDrawing): Box[] | null {
  const marks = effective(drawing.strokes).filter((stroke) => stroke.kind !== "keep");
  const boxes = marks.flatMap((stroke) => (stroke.kind === "box" ? [stroke.box] : []));
  return boxes.length > 0 && boxes.length === marks.length ? boxes : null;
}

/** Whether anything is marked, so that it can be ordered. */
export function isMarked(drawing: MaskDrawing | null): boolean {
  if (drawing === null) return false;
  return effective(drawing.strokes).some((stroke) => ["brush", "box", "image"].includes(stroke.kind));
}

/** A drawing for a picture of another size: everything at the same share of its width and height. */
export function scaled(drawing: MaskDrawing, size: { readonly width: number; readonly height: number }): MaskDrawing {
  const [width, height] = [Math.round(size.width), Math.round(size.height)];
  const [across, down] = [width / drawing.width, height / drawing.height];
  if (across === 1 && down === 1) return drawing;
  const strokes = effective(drawing.strokes).map((stroke): Stroke => {
    if (stroke.kind === "box" || stroke.kind === "keep") {
      const [x, y, w, h] = stroke.box;
      const from = { x: x * across, y: y * down };
      const to = { x: (x + w) * across, y: (y + h) * down };
      return { ...stroke, box: boxBetween(from, to, width, height) ?? [0, 0, 2, 2] };
    }
    if (stroke.kind === "brush" || stroke.kind === "eraser") {
      const points = stroke.points.map((point) => ({ x: point.x * across, y: point.y * down }));
      return { ...stroke, size: stroke.size * Math.sqrt(across * down), points };
    }
    return stroke;
  });
  return { width, height, strokes };
}
