import { Checkbox, Stack, Text } from "@mantine/core";
import type { CandidateOut } from "../../api";
import { formats, text, useLanguage, useText, wordFor } from "../../i18n";
import { removeTexts } from "./remove.texts";
import { spans } from "./spans";

/** What a candidate is called: by its text if it has one, else by what it is. */
export function nameOf(each: CandidateOut): string {
  if (each.text) return each.text;
  const [kind = "", where] = each.kind.split(" on the ");
  const word = wordFor(removeTexts, `kind-${kind}`);
  const what = word === `kind-${kind}` ? kind : word;
  return `${where ? text(removeTexts)("onMaster", { what }) : what} ${each.id}`;
}

/** Candidates to choose from, each with how sure it is. */
export function CandidateList({
  candidates,
  chosen,
  slides = false,
  onChange,
}: {
  candidates: readonly CandidateOut[];
  slides?: boolean;
  chosen: readonly number[];
  onChange: (chosen: number[]) => void;
}) {
  const t = useText(removeTexts);
  const language = useLanguage();
  return (
    <Stack gap={6}>
      {candidates.map((each) => (
        <Checkbox
          key={each.id}
          checked={chosen.includes(each.id)}
          onChange={(event) =>
            onChange(event.currentTarget.checked ? [...chosen, each.id] : chosen.filter((id) => id !== each.id))
          }
          label={
            <span>
              <b>{nameOf(each)}</b>{" "}
              <Text span size="sm" c="dimmed">
                {t("sure", { percent: formats.percent(each.score, language) })}
                {each.pages &&
                  each.pages.length > 0 &&
                  ` · ${t(slides ? "onSlides" : "onPages", { pages: spans(each.pages) })}`}
              </Text>
            </span>
          }
        />
      ))}
    </Stack>
  );
}
