import {
  type AssetOut,
  api,
  type CandidateOut,
  data,
  type QuoteIn,
  type QuoteOut,
  query,
  type RemovalItemOut,
} from "../../api";
import { upload } from "../../uploads/upload";
import type { Basis, Choices, DraftFile } from "./draft";
import { boxesByPage, effective, isMarked, keepBoxes, type MaskDrawing, onlyBoxes, type Stroke } from "./mask/drawing";
import { maskFile } from "./mask/paint";
import { contentUrl, type Size } from "./media";
import { suspectsOf } from "./suspects";

export interface Ordered {
  readonly batch_id: string | null;
  readonly items: readonly RemovalItemOut[];
}

type Hints = NonNullable<QuoteIn["hints"]>;
type Rectangle = [number, number, number, number];

/** What is said of one file beyond how all are treated. */
export interface Marking {
  readonly drawing: MaskDrawing | null;
  readonly chosen: readonly number[];
  /** Where the chosen ones are: to go together with what was drawn. */
  readonly regions?: readonly Pick<CandidateOut, "id" | "box" | "pages">[] | null;
}

type Manual = Pick<QuoteIn, "hints" | "mask_asset_id" | "candidates">;

/** Turn a drawing into what the API takes: boxes as boxes, anything else as a picture that is uploaded first. */
export async function manualOf(asset: AssetOut, before: Marking): Promise<Manual> {
  const { chosen } = before;
  const drawing = withRegions(before);
  if (chosen.length > 0 && drawing === null) return { candidates: [...chosen] };
  if (drawing === null || !isMarked(drawing)) return {};
  if (onlyBoxes(drawing)) return { hints: hintsOf(drawing) };
  const mask = await upload(await maskFile(drawing, `mask of ${asset.name}.png`), () => {}).done;
  const keep = keepBoxes(drawing).map((box) => [...box] as Rectangle);
  return { mask_asset_id: mask.id, hints: keep.length ? [{ keep }] : undefined };
}

/** What was drawn, and the chosen regions as boxes beside it: they are looked into as boxes that are drawn. */
export function withRegions({ drawing, chosen, regions }: Marking): MaskDrawing | null {
  if (drawing === null || effective(drawing.strokes).length === 0) return null;
  const boxes = (regions ?? []).filter((each) => chosen.includes(each.id)).map(boxOf);
  return { ...drawing, strokes: [...effective(drawing.strokes), ...boxes] };
}

/** A region as a box; one that several pages have is for all of them. */
function boxOf({ box, pages }: Pick<CandidateOut, "box" | "pages">): Stroke {
  const [left = 0, top = 0, width = 1, height = 1] = box;
  const around = [Math.floor(left), Math.floor(top), Math.ceil(width), Math.ceil(height)] as const;
  return { kind: "box", box: around, ...(pages?.length === 1 && pages[0] ? { page: pages[0] } : {}) };
}

/** Boxes as the API takes them: one hint for each page that has some of its own, and one for all. */
export function hintsOf(drawing: MaskDrawing): Hints {
  return boxesByPage(drawing).map(({ page, boxes, keep }) =>
    query({
      boxes: boxes.map((box) => [...box] as Rectangle),
      keep: keep.map((box) => [...box] as Rectangle),
      pages: page === null ? null : ([page, page] as [number, number]),
    }),
  );
}

/** What an order that was made said of where the mark is, to say the same again; nothing if the server was to find it. */
export function manualBefore(payload: unknown): Manual {
  const { mode, hints, mask_asset_id, candidates } = (payload ?? {}) as Manual & Pick<QuoteIn, "mode">;
  if (mode !== "MANUAL") return {};
  return query({ hints, mask_asset_id, candidates });
}

/**
 * A drawing to go on from: the drawing of the earlier order, or the boxes of the candidates. A candidate of a
 * document is marked on the first page that has it.
 */
export function drawingBefore(
  payload: unknown,
  candidates: readonly Pick<CandidateOut, "box" | "pages" | "score">[],
  size: Size | null,
): MaskDrawing | null {
  if (size === null) return null;
  const whole = { width: Math.round(size.width), height: Math.round(size.height) };
  const { hints, mask_asset_id } = manualBefore(payload);
  const strokes: Stroke[] = mask_asset_id ? [{ kind: "image", url: contentUrl(mask_asset_id) }] : [];
  for (const { boxes, keep, pages } of hints ?? []) {
    const page = pages ? { page: pages[0] } : {};
    for (const box of boxes ?? []) strokes.push({ kind: "box", box: [...box] as Rectangle, ...page });
    for (const box of keep ?? []) strokes.push({ kind: "keep", box: [...box] as Rectangle, ...page });
  }
  if (strokes.every((stroke) => stroke.kind === "keep")) {
    for (const { box, pages } of suspectsOf(candidates)) strokes.push(boxOf({ box, pages: pages?.slice(0, 1) ?? [] }));
  }
  return strokes.length > 0 ? { ...whole, strokes } : null;
}

type Drafted = Pick<DraftFile, "drawing" | "chosen" | "touched" | "regions">;

/** Whether the user said where the mark is, or left it to what was found. */
export function modeOf(file: Pick<Drafted, "drawing" | "touched">): "AUTO" | "MANUAL" {
  return file.touched || isMarked(file.drawing) ? "MANUAL" : "AUTO";
}

/** Whether there is something to remove, as far as that is known: what is not found yet is looked for with the order. */
export function isReady(file: Drafted & Pick<DraftFile, "asset">): boolean {
  if (file.asset === null) return false;
  return isMarked(file.drawing) || file.chosen.length > 0 || (file.regions === null && !file.touched);
}

/** What it would cost. A price does not depend on where the mark is, so AUTO stands for MANUAL. */
export function quote(assetIds: string[], quality: Choices["quality"]): Promise<QuoteOut> {
  return data(api.POST("/v1/removals/quote", { body: { asset_ids: assetIds, quality, break_signature: true } }));
}

/**
 * Order what was drafted: files alike in one request, those with a mask of their own in one each. `onOrdered` hears of
 * each that is taken: where a later one is refused, those are not to be ordered, and paid, again.
 */
export async function order(
  files: readonly DraftFile[],
  choices: Choices,
  onOrdered: (keys: readonly string[], ordered: Ordered) => void,
): Promise<void> {
  const assets = files.flatMap((file) => (file.asset ? [{ file, asset: file.asset }] : []));
  const common = { quality: choices.quality, rights: { basis: choices.basis } };
  const plain = assets.filter(({ file }) => modeOf(file) === "AUTO" && keepsOf(file.drawing).length === 0);
  if (plain.length > 0) {
    const body = { ...common, asset_ids: plain.map(({ asset }) => asset.id), mode: "AUTO" as const };
    onOrdered(
      plain.map(({ file }) => file.key),
      await data(api.POST("/v1/removals", { body })),
    );
  }
  for (const { file, asset } of assets.filter((each) => !plain.includes(each))) {
    const mode = modeOf(file);
    const said = mode === "MANUAL" ? await manualOf(asset, file) : { hints: keepsOf(file.drawing) };
    const body = { ...common, ...said, asset_ids: [asset.id], mode };
    onOrdered([file.key], await data(api.POST("/v1/removals", { body })));
  }
}

function keepsOf(drawing: MaskDrawing | null): Hints {
  return drawing === null ? [] : hintsOf(drawing);
}

/** Order one file again with other options; the position of the mark stays that of `before`, unless it is set again. */
export async function orderAgain(
  asset: AssetOut,
  before: unknown,
  how: {
    basis: Basis;
    quality: Choices["quality"];
    acceptPoor?: boolean;
    breakSignature?: boolean;
    /** Two clicks with one key are one order. */
    once?: string;
  } & Partial<Marking>,
): Promise<string> {
  const given = await manualOf(asset, { drawing: how.drawing ?? null, chosen: how.chosen ?? [] });
  const manual = Object.keys(given).length > 0 ? given : manualBefore(before);
  const isManual = Object.keys(manual).length > 0;
  const made = await data(
    api.POST("/v1/removals", {
      ...(how.once !== undefined && { headers: { "Idempotency-Key": how.once } }),
      body: {
        ...manual,
        asset_ids: [asset.id],
        mode: isManual ? "MANUAL" : "AUTO",
        quality: how.quality,
        rights: { basis: how.basis },
        accept_poor: how.acceptPoor ?? false,
        break_signature: how.breakSignature ?? false,
      },
    }),
  );
  return made.items[0]?.id ?? "";
}
