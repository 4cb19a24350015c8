import type { AssetOut } from "../../api";

export interface Size {
  readonly width: number;
  readonly height: number;
}

interface Meta {
  readonly width?: number | null;
  readonly height?: number | null;
  readonly pages?: number | null;
  readonly orientation?: number | null;
  readonly duration_ms?: number | null;
  readonly format?: string;
  readonly signed?: boolean;
  readonly details?: {
    readonly page_width_pt?: number;
    readonly page_height_pt?: number;
    readonly slide_width_emu?: number | null;
    readonly slide_height_emu?: number | null;
  };
}

const EMU = 12_700; // of a presentation's units, in a point

export function metaOf(asset: AssetOut): Meta {
  return asset.meta as Meta;
}

/** What a file is by its name, until the server has looked into it. */
export function kindOf(name: string): string {
  if (/\.(mp4|mov|mkv|webm|m4v)$/i.test(name)) return "VIDEO";
  if (/\.pdf$/i.test(name)) return "PDF";
  return /\.pptx?$/i.test(name) ? "PPT" : "IMAGE";
}

/** The units of marks: pixels of the upright picture, points of a page. */
export function sizeOf(asset: AssetOut): Size | null {
  const meta = metaOf(asset);
  const { page_width_pt: across, page_height_pt: down } = meta.details ?? {};
  if (across && down) return { width: across, height: down };
  const { slide_width_emu: wide, slide_height_emu: high } = meta.details ?? {};
  if (wide && high) return { width: wide / EMU, height: high / EMU };
  if (!meta.width || !meta.height) return null;
  // From 5 on, EXIF says that it lies on its side.
  return (meta.orientation ?? 1) >= 5
    ? { width: meta.height, height: meta.width }
    : { width: meta.width, height: meta.height };
}

/** Whether browsers draw this kind of picture. */
export function isShown(mimeType: string): boolean {
  return ["image/jpeg", "image/png", "image/webp", "image/gif", "image/avif"].includes(mimeType);
}

export const contentUrl = (assetId: string) => `/v1/assets/${encodeURIComponent(assetId)}/content?inline=true`;
export const previewUrl = (assetId: string) => `/v1/assets/${encodeURIComponent(assetId)}/preview`;
export const pageUrl = (assetId: string, page: number) => `/v1/assets/${encodeURIComponent(assetId)}/pages/${page}`;
export const resultPageUrl = (taskId: string, page: number) =>
  `/v1/tasks/${encodeURIComponent(taskId)}/result/pages/${page}`;
export const resultUrl = (taskId: string) => `/v1/tasks/${encodeURIComponent(taskId)}/result/content?inline=true`;
export const downloadUrl = (taskId: string) => `/v1/tasks/${encodeURIComponent(taskId)}/result/content`;
export const resultPreviewUrl = (taskId: string) => `/v1/tasks/${encodeURIComponent(taskId)}/preview`;
export const compareUrl = (taskId: string) => `/v1/tasks/${encodeURIComponent(taskId)}/compare`;

export const heldBackUrl = (taskId: string) => `/v1/removals/${encodeURIComponent(taskId)}/held-back`;

/** Save files with the browser's download: one as it is, several as one archive. */
export function download(...taskIds: string[]): void {
  const [first = ""] = taskIds;
  const asked = new URLSearchParams(taskIds.map((id) => ["task_id", id]));
  const link = document.createElement("a");
  link.href = taskIds.length > 1 ? `/v1/results/archive?${asked}` : downloadUrl(first);
  link.download = "";
  link.click();
}
