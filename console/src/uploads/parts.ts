import type { UploadOut } from "../api";

type Parts = Pick<UploadOut, "parts" | "part_bytes" | "stored">;

/** The numbers of the parts that are not there yet. */
export function missingParts(upload: Parts): number[] {
  const stored = new Set(upload.stored.map((part) => part.number));
  return Array.from({ length: upload.parts }, (_, index) => index + 1).filter((number) => !stored.has(number));
}

/** The bytes of one part: all have the same length but the last. */
export function partOf(file: Blob, upload: Pick<UploadOut, "part_bytes">, number: number): Blob {
  const start = (number - 1) * upload.part_bytes;
  return file.slice(start, Math.min(start + upload.part_bytes, file.size));
}

// Which upload belongs to which file, so that a page that was closed can go on with it.
type Named = Pick<File, "name" | "size" | "lastModified">;

const PREFIX = "headrace.upload.";

function keyOf(file: Named): string {
  return `${PREFIX}${file.size}.${file.lastModified}.${file.name}`;
}

/** The names of files whose uploads were interrupted: choosing one again resumes it. */
export function interruptedUploads(): string[] {
  try {
    const keys = Object.keys(localStorage).filter((key) => key.startsWith(PREFIX));
    return keys.map((key) => key.slice(PREFIX.length).split(".").slice(2).join("."));
  } catch {
    return [];
  }
}

export function rememberedUpload(file: Named): string | null {
  try {
    return localStorage.getItem(keyOf(file));
  } catch {
    return null;
  }
}

export function rememberUpload(file: Named, id: string | null): void {
  try {
    if (id === null) localStorage.removeItem(keyOf(file));
    else localStorage.setItem(keyOf(file), id);
  } catch {
    // Without storage an upload goes on only while its page is open.
  }
}
