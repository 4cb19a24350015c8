import type { CandidateOut } from "../../api";

const MAX_FURNITURE_SCORE = 0.15; // of letterheads, foot lines and notes: as in headrace.removal.thresholds

/** The candidates that look like marks, without letterheads, foot lines and notes of a document. */
export function suspectsOf<T extends Pick<CandidateOut, "score" | "pages">>(candidates: readonly T[]): readonly T[] {
  return candidates.filter(({ score, pages }) => !pages?.length || score > MAX_FURNITURE_SCORE);
}

/** What a result shows as found: what looks like a mark, or else what the user must have named. */
export function shownAsFound<T extends Pick<CandidateOut, "score" | "pages">>(candidates: readonly T[]): readonly T[] {
  const suspects = suspectsOf(candidates);
  return suspects.length > 0 ? suspects : candidates;
}
