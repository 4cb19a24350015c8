import type { Size } from "../media";

export type Box = readonly [left: number, top: number, width: number, height: number];

/** Where a box begins that is drawn without a mouse: in the middle, a quarter as wide and as high as the picture. */
export function firstBox({ width, height }: Size): Box {
  return [Math.round(width * 0.375), Math.round(height * 0.375), Math.ceil(width / 4), Math.ceil(height / 4)];
}

const WAYS: Readonly<Record<string, readonly [number, number]>> = {
  ArrowLeft: [-1, 0],
  ArrowRight: [1, 0],
  ArrowUp: [0, -1],
  ArrowDown: [0, 1],
};

/**
 * The box after a key: arrows move it, with Shift they move its right or lower edge, with Alt by a single pixel. Null for
 * keys that are none of its business. It never leaves the picture.
 */
export function nudged(
  [left, top, width, height]: Box,
  { key, shiftKey, altKey }: Pick<KeyboardEvent, "key" | "shiftKey" | "altKey">,
  size: Size,
): Box | null {
  const way = WAYS[key];
  if (!way) return null;
  const step = altKey ? 1 : Math.max(1, Math.round(Math.max(size.width, size.height) / 50));
  const [across, down] = [way[0] * step, way[1] * step];
  const within = (value: number, least: number, most: number) => Math.min(Math.max(value, least), most);
  if (shiftKey) {
    return [left, top, within(width + across, 1, size.width - left), within(height + down, 1, size.height - top)];
  }
  return [within(left + across, 0, size.width - width), within(top + down, 0, size.height - height), width, height];
}
