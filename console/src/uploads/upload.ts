// One file on its way to the server: in parts, with progress, going on after an interruption of any kind.
import { ApiError, type AssetOut, api, data, type UploadOut, whenBack } from "../api";
import { credentials } from "../api/credentials";
import { missingParts, partOf, rememberedUpload, rememberUpload } from "./parts";

export interface Transfer {
  readonly cancel: () => void;
  readonly done: Promise<AssetOut>;
}

const AT_ONCE = 2;
const MOST_TRIES = 6;

/** Send a file; `tell` hears how many bytes have arrived. */
export function upload(file: File, tell: (sent: number) => void): Transfer {
  const abort = new AbortController();
  return { cancel: () => abort.abort(), done: run(file, tell, abort.signal) };
}

async function run(file: File, tell: (sent: number) => void, signal: AbortSignal): Promise<AssetOut> {
  const begun = await begin(file);
  rememberUpload(file, begun.id);
  try {
    await sendParts(file, begun, tell, signal);
    const asset = await data(
      api.POST("/v1/uploads/{upload_id}/complete", { params: { path: { upload_id: begun.id } }, signal }),
    );
    rememberUpload(file, null);
    return asset;
  } catch (error) {
    if (isRefused(error)) rememberUpload(file, null);
    if (signal.aborted) {
      rememberUpload(file, null);
      void api.DELETE("/v1/uploads/{upload_id}", { params: { path: { upload_id: begun.id } } }).catch(() => {});
    }
    throw error;
  }
}

/** The server will not have this file, however often it is sent. */
function isRefused(error: unknown): boolean {
  return error instanceof ApiError && [400, 413, 415, 422].includes(error.status);
}

/** The upload that an earlier page began with this file, if it is still open; otherwise a new one. */
async function begin(file: File): Promise<UploadOut> {
  const known = rememberedUpload(file);
  if (known !== null) {
    try {
      const found = await data(api.GET("/v1/uploads/{upload_id}", { params: { path: { upload_id: known } } }));
      if (found.status === "OPEN" && found.size_bytes === file.size) return found;
    } catch (error) {
      if (!(error instanceof ApiError) || error.status === 0) throw error;
    }
  }
  return data(api.POST("/v1/uploads", { body: { name: file.name, size_bytes: file.size } }));
}

async function sendParts(
  file: File,
  upload: UploadOut,
  tell: (sent: number) => void,
  signal: AbortSignal,
): Promise<void> {
  const waiting = missingParts(upload);
  const sent = new Map<number, number>(upload.stored.map((part) => [part.number, part.size_bytes]));
  const note = (number: number, bytes: number) => {
    sent.set(number, bytes);
    tell([...sent.values()].reduce((sum, each) => sum + each, 0));
  };
  const work = async () => {
    for (let number = waiting.shift(); number !== undefined; number = waiting.shift()) {
      await sendPart(file, upload, number, (bytes) => note(number as number, bytes), signal);
    }
  };
  await Promise.all(Array.from({ length: AT_ONCE }, work));
}

/** Send a part until it is stored: waits for an unreachable server, and for a new sign-in after the session ended. */
async function sendPart(
  file: File,
  upload: UploadOut,
  number: number,
  tell: (bytes: number) => void,
  signal: AbortSignal,
): Promise<void> {
  const bytes = partOf(file, upload, number);
  for (let attempt = 1; ; attempt += 1) {
    signal.throwIfAborted();
    const status = await put(`/v1/uploads/${upload.id}/parts/${number}`, bytes, tell, signal);
    if (status.code >= 200 && status.code < 300) return tell(bytes.size);
    tell(0);
    if (status.code === 401) {
      if (!(await credentials.renew())) throw problem(status);
    } else if (status.code === 0) {
      await whenBack();
    } else if (status.code === 403 && (await credentials.refresh())) {
      continue;
    } else if (status.code < 500 && status.code !== 429) {
      throw problem(status);
    }
    if (attempt >= MOST_TRIES) throw problem(status);
    if (status.code === 429 || status.code >= 500) await new Promise((wake) => setTimeout(wake, 500 * attempt));
  }
}

interface Status {
  readonly code: number;
  readonly body: string;
}

function problem({ code, body }: Status): ApiError {
  try {
    return new ApiError(code, JSON.parse(body));
  } catch {
    return new ApiError(code, {});
  }
}

/** fetch cannot tell how much of a body is out; XMLHttpRequest can. */
function put(url: string, body: Blob, tell: (bytes: number) => void, signal: AbortSignal): Promise<Status> {
  return new Promise((resolve, reject) => {
    const request = new XMLHttpRequest();
    request.open("PUT", url);
    request.setRequestHeader("Content-Type", "application/octet-stream");
    const token = credentials.csrf();
    if (token !== null) request.setRequestHeader("X-CSRF-Token", token);
    request.upload.onprogress = (event) => tell(event.loaded);
    request.onloadend = () => resolve({ code: request.status, body: request.responseText });
    signal.addEventListener("abort", () => {
      request.abort();
      reject(signal.reason);
    });
    request.send(body);
  });
}
