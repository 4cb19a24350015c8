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
import { boxesByPage, isMarked, keepBoxes, type MaskDrawing, onlyBoxes, type Stroke } from "./mask/drawing";
import { maskFile } from "./mask/paint";
import { contentUrl, type Size } from "./media";

export interface Ordered {
  readonly batch_id: string | null;
  readonly items: readonly RemovalItemOut[];
}

type Hints = NonNullable<QuoteIn["hints"]>;
type Rectangle = [number, number, number, number];

/** What is said of one file beyond how all are treated. */
export interface Told {
  readonly drawing: MaskDrawing | null;
  readonly chosen: readonly number[];
}

type Manual = Pick<QuoteIn, "hints" | "mask_asset_id" | "candidates">;

/** Turn a drawing into what the API takes: boxes as boxes, anything else as a picture that is uploaded first. */
export async function told(asset: AssetOut, { drawing, chosen }: Told): Promise<Manual> {
  if (chosen.length > 0) return { candidates: [...chosen] };
  if (drawing === null || !isMarked(drawing)) return {};
  if (onlyBoxes(drawing)) return { hints: hintsOf(drawing) };
  const mask = await upload(await maskFile(drawing, `mask of ${asset.name}.png`), () => {}).done;
  const keep = keepBoxes(drawing).map((box) => [...box] as Rectangle);
  return { mask_asset_id: mask.id, hints: keep.length ? [{ keep }] : undefined };
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
export function toldBefore(payload: unknown): Manual {
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
  candidates: readonly Pick<CandidateOut, "box" | "pages">[],
  size: Size | null,
): MaskDrawing | null {
  if (size === null) return null;
  const whole = { width: Math.round(size.width), height: Math.round(size.height) };
  const { hints, mask_asset_id } = toldBefore(payload);
  const strokes: Stroke[] = mask_asset_id ? [{ kind: "image", url: contentUrl(mask_asset_id) }] : [];
  for (const { boxes, keep, pages } of hints ?? []) {
    const page = pages ? { page: pages[0] } : {};
    for (const box of boxes ?? []) strokes.push({ kind: "box", box: [...box] as Rectangle, ...page });
    for (const box of keep ?? []) strokes.push({ kind: "keep", box: [...box] as Rectangle, ...page });
  }
  if (strokes.every((stroke) => stroke.kind === "keep")) {
    for (const { box, pages } of candidates) {
      const [left = 0, top = 0, width = 1, height = 1] = box;
      const around = [Math.floor(left), Math.floor(top), Math.ceil(width), Math.ceil(height)] as const;
      strokes.push({ kind: "box", box: around, ...(pages?.[0] ? { page: pages[0] } : {}) });
    }
  }
  return strokes.length > 0 ? { ...whole, strokes } : null;
}

export function isReady(file: DraftFile, choices: Choices): boolean {
  if (file.asset === null) return false;
  return choices.mode === "AUTO" || file.chosen.length > 0 || isMarked(file.drawing);
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
  if (choices.mode === "AUTO") {
    const body = { ...common, asset_ids: assets.map(({ asset }) => asset.id), mode: "AUTO" as const };
    onOrdered(
      assets.map(({ file }) => file.key),
      await data(api.POST("/v1/removals", { body })),
    );
    return;
  }
  for (const { file, asset } of assets) {
    const manual = await told(asset, file);
    const body = { ...common, ...manual, asset_ids: [asset.id], mode: "MANUAL" as const };
    onOrdered([file.key], await data(api.POST("/v1/removals", { body })));
  }
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
  } & Partial<Told>,
): Promise<string> {
  const anew = await told(asset, { drawing: how.drawing ?? null, chosen: how.chosen ?? [] });
  const manual = Object.keys(anew).length > 0 ? anew : toldBefore(before);
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
