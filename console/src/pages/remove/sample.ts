// A picture to try it with, for users without one at hand. The server knows it by its bytes, and charges nothing for it.
const url = new URL("./sample.jpg", import.meta.url).href;

export async function readSample(name: string): Promise<File> {
  const answer = await fetch(url);
  if (!answer.ok) throw new Error("the sample picture could not be loaded");
  return new File([await answer.blob()], name, { type: "image/jpeg" });
}
