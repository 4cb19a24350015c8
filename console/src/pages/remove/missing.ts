/** Why a picture is not there, as a word of `removalTexts`. */
export type Missing = "noPicture" | "previewLimit" | "pictureBusy";

/** Ask the server why a picture is missing: an `<img>` learns that it failed, but not the reason. */
export async function reasonFor(url: string, ask: typeof fetch = fetch): Promise<Missing> {
  try {
    const reply = await ask(url, { credentials: "same-origin" });
    if (reply.status !== 429) return "noPicture";
    const { code } = (await reply.json()) as { code?: string };
    return code === "preview_limit" ? "previewLimit" : "pictureBusy";
  } catch {
    return "noPicture";
  }
}
