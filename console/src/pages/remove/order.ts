import { type AssetOut, api, data, type QuoteIn, type QuoteOut, type RemovalItemOut } from "../../api";
import { upload } from "../../uploads/upload";
import type { Basis, Choices, DraftFile } from "./draft";
import { isMarked, keepBoxes, type MaskDrawing, onlyBoxes } from "./mask/drawing";
import { maskFile } from "./mask/paint";

interface Ordered {
  readonly batch_id: string | null;
  readonly items: readonly RemovalItemOut[];
}

type Hints = NonNullable<QuoteIn["hints"]>;
type Span = [number, number];

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
  const pages = drawing.pages ? { pages: drawing.pages as Span } : {};
  const keep = keepBoxes(drawing).map((box) => [...box] as [number, number, number, number]);
  const boxes = onlyBoxes(drawing)?.map((box) => [...box] as [number, number, number, number]);
  if (boxes) return { hints: [{ boxes, ...(keep.length ? { keep } : {}), ...pages }] as Hints };
  const mask = await upload(await maskFile(drawing, `mask of ${asset.name}.png`), () => {}).done;
  return { mask_asset_id: mask.id, ...(keep.length ? { hints: [{ keep, ...pages }] as Hints } : {}) };
}

/** What an order that was made said of where the mark is, to say the same again; nothing if the server was to find it. */
export function toldBefore(payload: unknown): Manual {
  const { mode, hints, mask_asset_id, candidates } = (payload ?? {}) as Manual & Pick<QuoteIn, "mode">;
  if (mode !== "MANUAL") return {};
  return {
    ...(hints?.length ? { hints } : {}),
    ...(mask_asset_id ? { mask_asset_id } : {}),
    ...(candidates?.length ? { candidates } : {}),
  };
}

export function isReady(file: DraftFile, choices: Choices): boolean {
  if (file.asset === null) return false;
  return choices.mode === "AUTO" || file.chosen.length > 0 || isMarked(file.drawing);
}

/** What it would cost. A price does not depend on where the mark is, so AUTO stands for MANUAL. */
export function quote(assetIds: string[], quality: Choices["quality"]): Promise<QuoteOut> {
  return data(api.POST("/v1/removals/quote", { body: { asset_ids: assetIds, quality, break_signature: true } }));
}

/** Order what was drafted: files alike in one request, those with a mask of their own in one each. */
export async function order(files: readonly DraftFile[], choices: Choices): Promise<Ordered[]> {
  const assets = files.flatMap((file) => (file.asset ? [{ file, asset: file.asset }] : []));
  const common = { quality: choices.quality, rights: { basis: choices.basis } };
  if (choices.mode === "AUTO") {
    const body = { ...common, asset_ids: assets.map(({ asset }) => asset.id), mode: "AUTO" as const };
    return [await data(api.POST("/v1/removals", { body }))];
  }
  const ordered: Ordered[] = [];
  for (const { file, asset } of assets) {
    const manual = await told(asset, file);
    const body = { ...common, ...manual, asset_ids: [asset.id], mode: "MANUAL" as const };
    ordered.push(await data(api.POST("/v1/removals", { body })));
  }
  return ordered;
}

/** Order one file once more, differently; where the mark is stays as `before` says, unless it is told anew. */
export async function orderAgain(
  asset: AssetOut,
  before: unknown,
  how: { basis: Basis; quality: Choices["quality"]; acceptPoor?: boolean; breakSignature?: boolean } & Partial<Told>,
): Promise<string> {
  const anew = await told(asset, { drawing: how.drawing ?? null, chosen: how.chosen ?? [] });
  const manual = Object.keys(anew).length > 0 ? anew : toldBefore(before);
  const isManual = Object.keys(manual).length > 0;
  const made = await data(
    api.POST("/v1/removals", {
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
