import { describe, expect, it } from "vitest";
import { reasonFor } from "./missing";
import { removalTexts } from "./remove.texts";

const answering = (status: number, body: string) => async () => new Response(body, { status });
const problem = (code: string) => JSON.stringify({ code });

describe("why a picture is not there: a broken picture was shown where the server answered 429", () => {
  it("is the limit of a day for results that are not paid for", async () => {
    expect(await reasonFor("/held-back", answering(429, problem("preview_limit")))).toBe("previewLimit");
  });
  it("is that others are served first", async () => {
    for (const code of ["inspection_busy", "drawing_busy", "rate_limited"]) {
      expect(await reasonFor("/preview", answering(429, problem(code)))).toBe("pictureBusy");
    }
  });
  it("is unknown otherwise", async () => {
    expect(await reasonFor("/preview", answering(404, problem("asset_not_found")))).toBe("noPicture");
    expect(await reasonFor("/preview", answering(429, "<html>"))).toBe("noPicture");
    const away = async () => Promise.reject(new TypeError("network"));
    expect(await reasonFor("/preview", away)).toBe("noPicture");
  });
  it("is said in both languages", () => {
    for (const word of ["previewLimit", "pictureBusy", "NO_MARK_THERE"] as const) {
      expect(removalTexts.en[word]).toBeTruthy();
      expect(removalTexts.zh[word]).toMatch(/\p{Script=Han}/u);
    }
  });
});
