import { Text } from "@mantine/core";
import type { EntryOut } from "../api";
import { formats, useLanguage, useText } from "../i18n";
import { commonTexts } from "./components.texts";
import { effectOf } from "./ledger";
import { StateBadge } from "./StateBadge";

/** What an entry takes from the balance or gives back: the column adds up. */
export function EntryUnits({ entry }: { entry: EntryOut }) {
  const t = useText(commonTexts);
  const language = useLanguage();
  const units = formats.number(entry.units, language);
  const effect = effectOf(entry);
  return (
    <Text size="sm" fw={effect === "none" ? 400 : 600} c={effect === "none" ? "dimmed" : undefined} className="figures">
      {effect === "none" ? t("ofHeld", { n: units }) : `${effect === "gives" ? "+" : "−"}${units}`}
    </Text>
  );
}

/** What became of the units: a credit without a hold was granted, or returned for a task. */
export function EntryState({ entry }: { entry: EntryOut }) {
  const t = useText(commonTexts);
  if (entry.status !== "COMMITTED" || entry.direction !== "CREDIT") return <StateBadge state={entry.status} />;
  return <StateBadge state="SUCCEEDED" label={t(entry.task_id ? "unitsReturned" : "unitsGranted")} />;
}
