// What is about to be ordered: files, each on its way or there, and how they are to be treated. It lives outside of the
// page, so that uploads continue on other pages, and comes back after a reload.
import { useSyncExternalStore } from "react";
import { type AssetOut, api, type CandidateOut, data, randomKey } from "../../api";
import { onSignedOut, whoIsIn } from "../../session/store";
import { type Transfer, upload } from "../../uploads/upload";
import { type MaskDrawing, scaled } from "./mask/drawing";
import { sizeOf } from "./media";

export interface DraftFile {
  readonly key: string;
  readonly name: string;
  readonly size: number;
  readonly sent: number;
  readonly asset: AssetOut | null;
  readonly error: unknown;
  /** A picture of it to show before the server has one. */
  readonly local: string | null;
  readonly drawing: MaskDrawing | null;
  /** The free task that looks for marks; null before it is asked for, or where it was refused. */
  readonly detection: string | null;
  /** What may be a mark; null until it was looked for. */
  readonly regions: readonly CandidateOut[] | null;
  /** Which of the regions are to go: those that are certain, until the user says otherwise. */
  readonly chosen: readonly number[];
  readonly touched: boolean;
}

export type Mode = "AUTO" | "MANUAL";
export type Quality = "STANDARD" | "HIGH";
export type Basis = "OWNER" | "LICENSEE" | "AUTHORIZED";

export interface Choices {
  readonly quality: Quality;
  readonly basis: Basis;
  readonly declared: boolean;
}

interface Draft {
  readonly files: readonly DraftFile[];
  readonly choices: Choices;
}

/** What comes back after a reload. */
interface Kept {
  readonly user: string | null;
  readonly files: readonly (Pick<DraftFile, "drawing" | "detection" | "chosen" | "touched"> & {
    readonly id: string;
  })[];
  readonly choices: Choices;
}

const KEY = "headrace.draft";
const FIRST: Choices = { quality: "STANDARD", basis: "OWNER", declared: false };
const UNTOUCHED = { drawing: null, detection: null, regions: null, chosen: [], touched: false } as const;
const AT_ONCE = 3;
const listeners = new Set<() => void>();
const transfers = new Map<string, Transfer>();
const waiting: { key: string; file: File }[] = [];
let draft: Draft = { files: [], choices: FIRST };
let restored = false;

function set(next: Partial<Draft>): void {
  draft = { ...draft, ...next };
  try {
    const files = draft.files.flatMap(({ asset, drawing, detection, chosen, touched }) =>
      asset ? [{ id: asset.id, drawing, detection, chosen, touched }] : [],
    );
    const kept: Kept = { user: whoIsIn(), files, choices: draft.choices };
    if (kept.user !== null) sessionStorage.setItem(KEY, JSON.stringify(kept));
  } catch {
    // It is gone after a reload then.
  }
  for (const tell of listeners) tell();
}

function change(key: string, changes: Partial<DraftFile>): void {
  set({ files: draft.files.map((each) => (each.key === key ? { ...each, ...changes } : each)) });
}

export function useDraft(): Draft {
  return useSyncExternalStore(
    (tell) => {
      listeners.add(tell);
      return () => listeners.delete(tell);
    },
    () => draft,
  );
}

export function choose(changes: Partial<Choices>): void {
  set({ choices: { ...draft.choices, ...changes } });
}

/** Take files in, and begin to upload them. */
export function addFiles(files: readonly File[]): void {
  const added = files.map((file) => {
    const key = randomKey();
    waiting.push({ key, file });
    const local = file.type.startsWith("image/") ? URL.createObjectURL(file) : null;
    return {
      key,
      name: file.name,
      size: file.size,
      sent: 0,
      asset: null,
      error: null,
      local,
      ...UNTOUCHED,
    };
  });
  set({ files: [...draft.files, ...added] });
  pump();
}

/** Take a file that is on the server already. */
export function addAsset(asset: AssetOut, before: Partial<typeof UNTOUCHED | Kept["files"][number]> = {}): void {
  const key = randomKey();
  const file = {
    key,
    name: asset.name,
    size: asset.size_bytes,
    sent: asset.size_bytes,
    asset,
    error: null,
    local: null,
  };
  const { drawing, detection, chosen, touched } = { ...UNTOUCHED, ...before };
  set({ files: [...draft.files, { ...file, drawing, detection, regions: null, chosen, touched }] });
}

function pump(): void {
  while (transfers.size < AT_ONCE) {
    const next = waiting.shift();
    if (next === undefined) return;
    const { key, file } = next;
    const transfer = upload(file, (sent) => change(key, { sent }));
    transfers.set(key, transfer);
    transfer.done
      .then(
        (asset) => change(key, { asset, sent: file.size }),
        (error) => change(key, { error }),
      )
      .finally(() => {
        transfers.delete(key);
        pump();
      });
  }
}

export function removeFile(key: string): void {
  transfers.get(key)?.cancel();
  const index = waiting.findIndex((each) => each.key === key);
  if (index >= 0) waiting.splice(index, 1);
  const file = draft.files.find((each) => each.key === key);
  if (file?.local) URL.revokeObjectURL(file.local);
  // Its result is not needed any more, and it would run before the order.
  if (file?.detection && file.regions === null) {
    const path = { task_id: file.detection };
    void api.POST("/v1/tasks/{task_id}/cancel", { params: { path } }).catch(() => {});
  }
  set({ files: draft.files.filter((each) => each.key !== key) });
}

export function setDrawing(key: string, drawing: MaskDrawing | null): void {
  change(key, { drawing });
}

export function setDetection(key: string, detection: string): void {
  change(key, { detection });
}

/** What was found: what is certain is chosen, unless the user has chosen already. */
export function setRegions(key: string, regions: readonly CandidateOut[]): void {
  const file = draft.files.find((each) => each.key === key);
  if (!file || file.regions === regions) return;
  const certain = regions.filter((each) => each.certain).map((each) => each.id);
  change(key, file.touched ? { regions } : { regions, chosen: certain });
}

export function setChosen(key: string, chosen: readonly number[]): void {
  change(key, { chosen, touched: true });
}

/** The same mask for every other picture and clip that has arrived, scaled to its size. */
export function copyDrawing(from: DraftFile): void {
  const { drawing } = from;
  if (drawing === null) return;
  for (const each of draft.files) {
    const size = each.asset && ["IMAGE", "VIDEO"].includes(each.asset.media_type) ? sizeOf(each.asset) : null;
    if (each.key !== from.key && size !== null) change(each.key, { drawing: scaled(drawing, size) });
  }
}

/** These were ordered: what is left is still to do; with the last of them the declaration goes, how things are done stays. */
export function ordered(keys: readonly string[]): void {
  for (const key of keys) removeFile(key);
  if (draft.files.length === 0) choose({ declared: false });
}

// Files and masks are one person's: with them they go.
onSignedOut(() => {
  for (const { key } of draft.files) removeFile(key);
  set({ files: [], choices: FIRST });
  restored = false;
});

/** After a reload: the files that had arrived are still on the server. */
export async function restoreDraft(): Promise<void> {
  if (restored) return;
  restored = true;
  let kept: Kept;
  try {
    const text = sessionStorage.getItem(KEY);
    if (text === null) return;
    kept = JSON.parse(text) as Kept;
  } catch {
    return;
  }
  if (kept.user !== whoIsIn() || !Array.isArray(kept.files)) return;
  set({ choices: { ...FIRST, ...kept.choices, declared: false } });
  for (const before of kept.files) {
    try {
      const path = { asset_id: before.id };
      addAsset(await data(api.GET("/v1/assets/{asset_id}", { params: { path } })), before);
    } catch {
      // It was deleted meanwhile.
    }
  }
}
