// The state of the mask editor, and every change of it in one place: what is drawn, the tool, and the part in view.
import { add, EMPTY, type History, type MaskDrawing, redo, type Stroke, undo } from "./drawing";
import type { View } from "./view";

export const COLOURS = { red: "#e53935", green: "#00a152", blue: "#2962ff" } as const;
export type Colour = keyof typeof COLOURS;
export type Tool = "select" | "brush" | "eraser" | "box" | "keep" | "pan";

const MIN_BRUSH_PX = 2;
const MAX_BRUSH_PX = 400;

export interface Editor {
  readonly history: History;
  readonly tool: Tool;
  /** Of the brush, in pixels of the picture. */
  readonly size: number;
  readonly opacity: number;
  readonly colour: Colour;
  readonly view: View;
  /** The view that shows the whole picture. */
  readonly whole: View;
}

export type Action =
  /** With a page, a box is for that page only. */
  | { readonly type: "draw"; readonly stroke: Stroke; readonly page?: number | undefined }
  | { readonly type: "undo" }
  | { readonly type: "redo" }
  | { readonly type: "tool"; readonly tool: Tool }
  | { readonly type: "size"; readonly size: number }
  | { readonly type: "resize"; readonly by: number }
  | { readonly type: "opacity"; readonly opacity: number }
  | { readonly type: "colour"; readonly colour: Colour }
  | { readonly type: "view"; readonly change: (view: View) => View }
  | { readonly type: "fit" }
  /** The window has another size: the whole picture is shown again. */
  | { readonly type: "window"; readonly whole: View };

interface Opened {
  readonly width: number;
  readonly height: number;
  readonly initial: MaskDrawing | null;
  readonly boxesOnly: boolean;
  /** Whether there are regions to click on. */
  readonly selects?: boolean;
}

export function opened({ width, height, initial, boxesOnly, selects = false }: Opened): Editor {
  const view = { scale: 1, x: 0, y: 0 };
  return {
    history: initial ? { done: initial.strokes, undone: [] } : EMPTY,
    tool: selects ? "select" : boxesOnly ? "box" : "brush",
    size: Math.max(6, Math.round(Math.max(width, height) / 40)),
    opacity: 0.55,
    colour: "red",
    view,
    whole: view,
  };
}

export function edit(editor: Editor, action: Action): Editor {
  switch (action.type) {
    case "draw":
      return { ...editor, history: add(editor.history, placed(action.stroke, action.page)) };
    case "undo":
      return { ...editor, history: undo(editor.history) };
    case "redo":
      return { ...editor, history: redo(editor.history) };
    case "tool":
      return { ...editor, tool: action.tool };
    case "size":
      return { ...editor, size: action.size };
    case "resize":
      return { ...editor, size: resized(editor.size, action.by) };
    case "opacity":
      return { ...editor, opacity: action.opacity };
    case "colour":
      return { ...editor, colour: action.colour };
    case "view":
      return { ...editor, view: action.change(editor.view) };
    case "fit":
      return { ...editor, view: editor.whole };
    case "window":
      return { ...editor, view: action.whole, whole: action.whole };
  }
}

function placed(stroke: Stroke, page: number | undefined): Stroke {
  return page !== undefined && (stroke.kind === "box" || stroke.kind === "keep") ? { ...stroke, page } : stroke;
}

/** By a pixel at least: a small brush would never grow. */
function resized(size: number, by: number): number {
  const wanted = Math.round(size * by);
  const changed = wanted === size ? size + Math.sign(by - 1) : wanted;
  return Math.min(MAX_BRUSH_PX, Math.max(MIN_BRUSH_PX, changed));
}
