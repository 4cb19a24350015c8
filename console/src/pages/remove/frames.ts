const USUAL_FRAME_S = 1 / 25;

/** How long one frame of a clip lasts, by what was found in the file; the usual length where that is not known. */
export function frameSeconds(facts: Record<string, unknown> | null | undefined): number {
  const [frames, ms] = [Number(facts?.frames), Number(facts?.duration_ms)];
  return frames > 1 && ms > 0 ? ms / 1000 / frames : USUAL_FRAME_S;
}

/** The middle of the frame `step` frames away: exactly on a border, players disagree. */
export function frameAt(now: number, step: number, frame: number, length: number): number {
  const wanted = (Math.floor(now / frame + 1e-6) + step + 0.5) * frame;
  return Math.min(Math.max(frame / 2, wanted), Math.max(frame / 2, length - frame / 2));
}
