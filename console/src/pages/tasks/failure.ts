import type { TaskItemOut } from "../../api";
import { wordFor } from "../../i18n";
import { removalTexts } from "../remove/remove.texts";

/** The types whose tasks are removals. */
export const MEDIA = ["IMAGE", "VIDEO", "PDF", "PPT"];

/** Why it failed: of removals in the words of their own page, since what the server says is for programs. */
export function failureOf({
  type,
  error_code,
  error_message,
}: Pick<TaskItemOut, "type" | "error_code" | "error_message">): string {
  const known = MEDIA.includes(type) && error_code ? wordFor(removalTexts, error_code) : error_code;
  return (known === error_code ? error_message : known) ?? "";
}
