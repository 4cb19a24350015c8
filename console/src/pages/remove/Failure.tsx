import { Alert, Button, Group, Stack, Text } from "@mantine/core";
import { useState } from "react";
import type { RemovalOut } from "../../api";
import { IconAlertTriangle, IconBrush, IconInfoCircle, Panel } from "../../components";
import { useLanguage, useText, wordFor } from "../../i18n";
import { ASKS } from "./batch";
import { CandidateList } from "./CandidateList";
import { Columns } from "./Columns";
import { HeldBack } from "./HeldBack";
import { MarkedPicture } from "./MarkedPicture";
import { Price, usePrice } from "./Price";
import { type Again, Note } from "./RemovalPage";
import { removalTexts, removeTexts } from "./remove.texts";

// Failures that can be resolved here; for the others the file itself has to change.
const TO_DRAW = [
  "NO_MARK",
  "NEEDS_REVIEW",
  "MARK_REMAINS",
  "MARK_MOVES",
  "MARK_WIDE",
  "POOR_RESULT",
  "DAMAGED",
  "HINT_UNUSABLE",
  "NO_CANDIDATE",
];

/** Why it was not removed, and the next step that helps. */
export function Failure({ removal, again }: { removal: RemovalOut; again: Again }) {
  const t = useText(removalTexts);
  const words = useText(removeTexts);
  useLanguage();
  const certain = removal.candidates.filter((each) => each.certain).map((each) => each.id);
  const [chosen, setChosen] = useState<number[]>(certain);
  const price = usePrice([removal.asset_id], removal.quality);
  const code = removal.error_code ?? "";
  // No advice to draw a box to users who have drawn one.
  const shown = code === "NO_MARK" && removal.mode === "MANUAL";
  const exact = code === "POOR_RESULT" && removal.mode === "MANUAL";
  const known = wordFor(removalTexts, shown ? "NO_MARK_THERE" : exact ? "POOR_EXACT" : code);
  const asks = ASKS.includes(code);
  // What was taken off by itself and not well enough comes out the same a second time.
  const tried = removal.held_back && removal.mode === "AUTO" && chosen.join() === certain.join();
  // One primary action: to remove what is chosen, where there is a choice that was not tried; else to draw.
  const choosing = removal.candidates.length > 0 && !tried;
  return (
    <Columns aside={removal.candidates.length > 0 ? "20rem" : null}>
      <Stack>
        <Alert
          icon={asks ? <IconInfoCircle /> : <IconAlertTriangle />}
          title={code === "NO_MARK" ? t("noMark") : asks ? t("asksTitle") : t("failedTitle")}
          role="alert"
          styles={{
            root: { background: asks ? "var(--active-ground)" : "var(--warn-ground)" },
            title: { color: asks ? "var(--active-ink)" : "var(--warn-ink)" },
            icon: { color: asks ? "var(--active-ink)" : "var(--warn-ink)" },
            message: { color: "var(--ink)" },
          }}
        >
          <Text size="sm" data-testid="failure">
            {known === code ? removal.error_message : known} {t("nothingCharged")}
          </Text>
          <Group gap="xs" mt="sm">
            {TO_DRAW.includes(code) && (removal.media_type !== "PPT" || removal.candidates.length > 0) && (
              <Button
                size="xs"
                variant={choosing ? "default" : "filled"}
                leftSection={<IconBrush size={14} />}
                onClick={again.draw}
              >
                {t("markIt")}
              </Button>
            )}
            {code === "SIGNED" && (
              <Button
                size="xs"
                variant="default"
                loading={again.busy}
                onClick={() => again.run({ breakSignature: true })}
              >
                {t("breakSignature")}
              </Button>
            )}
            {!TO_DRAW.includes(code) && code !== "SIGNED" && (
              <Button size="xs" variant="default" loading={again.busy} onClick={() => again.run({})}>
                {t("again")}
              </Button>
            )}
          </Group>
        </Alert>
        {(removal.held_back || code === "POOR_RESULT") && <HeldBack removal={removal} again={again} />}
        {removal.media_type !== "VIDEO" && (
          <Panel>
            <MarkedPicture
              removal={removal}
              chosen={chosen}
              onToggle={(id) => setChosen(chosen.includes(id) ? chosen.filter((each) => each !== id) : [...chosen, id])}
            />
          </Panel>
        )}
      </Stack>
      {removal.candidates.length > 0 && (
        <Panel title={words("candidates")}>
          <CandidateList
            candidates={removal.candidates}
            chosen={chosen}
            slides={removal.media_type === "PPT"}
            onChange={setChosen}
          />
          <Stack gap={4} mt="md">
            <Price price={price} note={words("afterwards")} />
          </Stack>
          <Button
            fullWidth
            mt="md"
            variant={choosing ? "filled" : "default"}
            disabled={chosen.length === 0 || tried}
            loading={again.busy}
            onClick={() => again.run({ chosen })}
          >
            {t("removeChosen")}
            {price.data && ` · ${words("units", { n: price.data.units })}`}
          </Button>
          {tried && <Note>{t("tried")}</Note>}
          <Note>{t("sameRights", { basis: words(`basis${removal.rights_basis}`) })}</Note>
        </Panel>
      )}
    </Columns>
  );
}
