import type { Size } from "./media";

export interface Crop extends Size {
  readonly x: number;
  readonly y: number;
}

const MARGIN = 0.25; // of the mark's size, around it
const MIN_PX = 160;

/** The part of a picture around these boxes, within the picture; null without any. */
export function cropAround(boxes: readonly (readonly number[])[], size: Size): Crop | null {
  if (boxes.length === 0) return null;
  const left = Math.min(...boxes.map(([x = 0]) => x));
  const top = Math.min(...boxes.map(([, y = 0]) => y));
  const right = Math.max(...boxes.map(([x = 0, , w = 0]) => x + w));
  const bottom = Math.max(...boxes.map(([, y = 0, , h = 0]) => y + h));
  const [x, width] = around(left, right, size.width);
  const [y, height] = around(top, bottom, size.height);
  return { x, y, width, height };
}

function around(from: number, to: number, whole: number): [number, number] {
  const length = Math.min(whole, Math.max(MIN_PX, (to - from) * (1 + 2 * MARGIN)));
  const start = Math.min(whole - length, Math.max(0, (from + to - length) / 2));
  return [start, length];
}
