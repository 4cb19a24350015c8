// What somebody draws over a picture, as a list of strokes in the picture's own pixels. Everything else (what is shown,
// the mask that is sent, undo) is made from that list.

export interface Point {
  readonly x: number;
  readonly y: number;
}

/** Left, top, width, height. */
export type Box = readonly [number, number, number, number];

export type Stroke =
  | { readonly kind: "brush" | "eraser"; readonly size: number; readonly points: readonly Point[] }
  | { readonly kind: "box" | "keep"; readonly box: Box }
  /** A mask that was loaded from a file or found by the server, as a picture. */
  | { readonly kind: "image"; readonly url: string }
  | { readonly kind: "clear" };

export interface MaskDrawing {
  readonly width: number;
  readonly height: number;
  readonly strokes: readonly Stroke[];
  /** Of documents: the first and the last page it is for; left out: all of them. */
  readonly pages?: readonly [number, number];
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
