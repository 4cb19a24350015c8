// Where the picture lies in its window: the factor it is drawn with, and the place of its top left corner.
import type { Point } from "./drawing";

export interface View {
  readonly scale: number;
  readonly x: number;
  readonly y: number;
}

interface Size {
  readonly width: number;
  readonly height: number;
}

const LARGEST = 32;
const MARGIN = 24;

/**
 * Whether a turn of the wheel means nearer or farther: a mouse's does, and a pinch, which comes with Ctrl. Two fingers
 * that glide over a trackpad move; they come in small steps, or sideways.
 */
export function isZooming(event: Pick<WheelEvent, "deltaX" | "deltaY" | "deltaMode" | "ctrlKey">): boolean {
  if (event.ctrlKey || event.deltaMode !== 0) return true;
  return event.deltaX === 0 && Math.abs(event.deltaY) >= 40;
}

const WHEEL_STEP = 40; // from here on it is a mouse's wheel, also with Ctrl

/** How much a turn of the wheel zooms; a pinch on a trackpad comes as small steps with Ctrl. */
export function wheelFactor(ctrlKey: boolean, delta: number): number {
  return Math.exp(-delta * (ctrlKey && Math.abs(delta) < WHEEL_STEP ? 0.012 : 0.0022));
}

/** The whole picture, in the middle of the window. */
export function fitted(picture: Size, frame: Size, margin = MARGIN): View {
  const scale = Math.min((frame.width - margin) / picture.width, (frame.height - margin) / picture.height, 4);
  const used = Number.isFinite(scale) && scale > 0 ? scale : 1;
  return { scale: used, x: (frame.width - picture.width * used) / 2, y: (frame.height - picture.height * used) / 2 };
}

/** Nearer or farther, so that what is under `at` stays under it. */
export function zoom(view: View, factor: number, at: Point, smallest: number): View {
  const scale = Math.min(LARGEST, Math.max(smallest, view.scale * factor));
  const real = scale / view.scale;
  return { scale, x: at.x - (at.x - view.x) * real, y: at.y - (at.y - view.y) * real };
}

/** A place in the window as a place in the picture. */
export function toPicture(view: View, at: Point): Point {
  return { x: (at.x - view.x) / view.scale, y: (at.y - view.y) / view.scale };
}

/** Two fingers that moved: the picture follows both. */
export function pinch(
  view: View,
  before: readonly [Point, Point],
  after: readonly [Point, Point],
  smallest: number,
): View {
  const middle = (pair: readonly [Point, Point]) => ({
    x: (pair[0].x + pair[1].x) / 2,
    y: (pair[0].y + pair[1].y) / 2,
  });
  const apart = (pair: readonly [Point, Point]) => Math.hypot(pair[0].x - pair[1].x, pair[0].y - pair[1].y) || 1;
  const [from, to] = [middle(before), middle(after)];
  const moved = { ...view, x: view.x + to.x - from.x, y: view.y + to.y - from.y };
  return zoom(moved, apart(after) / apart(before), to, smallest);
}
