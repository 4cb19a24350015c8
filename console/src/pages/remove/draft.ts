// What is about to be ordered: files, each on its way or there, and how they are to be treated. It lives outside of the
// page, so that uploads continue on other pages, and comes back after a reload.
import { useSyncExternalStore } from "react";
import { type AssetOut, api, data, randomKey } from "../../api";
import { onSignedOut, whoIsIn } from "../../session/store";
import { type Transfer, upload } from "../../uploads/upload";
import type { MaskDrawing } from "./mask/drawing";

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
  /** What of the candidates that were found is the mark, for MANUAL of documents. */
  readonly chosen: readonly number[];
}

export type Mode = "AUTO" | "MANUAL";
export type Quality = "STANDARD" | "HIGH";
export type Basis = "OWNER" | "LICENSEE" | "AUTHORIZED";

export interface Choices {
  readonly mode: Mode;
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
  readonly files: readonly (Pick<DraftFile, "drawing" | "chosen"> & { readonly id: string })[];
  readonly choices: Choices;
}

const KEY = "headrace.draft";
const FIRST: Choices = { mode: "AUTO", quality: "STANDARD", basis: "OWNER", declared: false };
const AT_ONCE = 3;
const listeners = new Set<() => void>();
const transfers = new Map<string, Transfer>();
const waiting: { key: string; file: File }[] = [];
let draft: Draft = { files: [], choices: FIRST };
let restored = false;

function set(next: Partial<Draft>): void {
  draft = { ...draft, ...next };
  try {
    const files = draft.files.flatMap(({ asset, drawing, chosen }) =>
      asset ? [{ id: asset.id, drawing, chosen }] : [],
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
      drawing: null,
      chosen: [],
    };
  });
  set({ files: [...draft.files, ...added] });
  pump();
}

/** Take a file that is on the server already. */
export function addAsset(asset: AssetOut, drawing: MaskDrawing | null, chosen: readonly number[]): void {
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
  set({ files: [...draft.files, { ...file, drawing, chosen }] });
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
  const local = draft.files.find((each) => each.key === key)?.local;
  if (local) URL.revokeObjectURL(local);
  set({ files: draft.files.filter((each) => each.key !== key) });
}

export function setDrawing(key: string, drawing: MaskDrawing | null): void {
  change(key, { drawing });
}

export function setChosen(key: string, chosen: readonly number[]): void {
  change(key, { chosen });
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
  for (const { id, drawing, chosen } of kept.files) {
    try {
      addAsset(await data(api.GET("/v1/assets/{asset_id}", { params: { path: { asset_id: id } } })), drawing, chosen);
    } catch {
      // It was deleted meanwhile.
    }
  }
}
