import { Switch, Text, Tooltip } from "@mantine/core";
import { useState } from "react";
import type { DiffOut } from "../../api";
import { useText } from "../../i18n";
import classes from "./Audit.module.css";
import { auditTexts } from "./audit.texts";
import { type Line, linesOf } from "./diff";

/** Before and after, field by field. */
export function Diff({ diff }: { diff: DiffOut }) {
  const t = useText(auditTexts);
  const lines = linesOf(diff);
  const changed = lines.filter((line) => line.changed);
  const [only, setOnly] = useState(true);
  const shown = only && changed.length > 0 ? changed : lines;
  const sides = { before: Boolean(diff.old_object), after: Boolean(diff.new_object) };
  return (
    <>
      {changed.length > 0 && changed.length < lines.length && (
        <Switch
          mb="sm"
          size="sm"
          label={t("onlyChanged")}
          checked={only}
          onChange={(event) => setOnly(event.currentTarget.checked)}
        />
      )}
      {/* biome-ignore lint/a11y/noNoninteractiveTabindex: what scrolls must be reachable by keyboard */}
      <section className={classes.scroll} tabIndex={0} aria-label={t("diff")}>
        <table className={classes.diff}>
          <thead>
            <tr>
              <th scope="col">{t("field")}</th>
              {sides.before && <th scope="col">{t("before")}</th>}
              {sides.after && <th scope="col">{t("after")}</th>}
            </tr>
          </thead>
          <tbody>
            {shown.map((line) => (
              <tr key={line.field} data-changed={line.changed || undefined}>
                <th scope="row">
                  {line.field}
                  {line.cut && (
                    <Tooltip label={t("cutText")} multiline w={260}>
                      <span className={classes.cut}>{t("cut")}</span>
                    </Tooltip>
                  )}
                </th>
                {sides.before && <Side line={line} value={line.before} side="before" />}
                {sides.after && <Side line={line} value={line.after} side="after" />}
              </tr>
            ))}
          </tbody>
        </table>
      </section>
    </>
  );
}

function Side({ line, value, side }: { line: Line; value: string | undefined; side: "before" | "after" }) {
  const t = useText(auditTexts);
  if (line.hidden && side === "after") {
    return (
      <td className={classes.value} data-side={side}>
        <Text span size="sm" c="dimmed" fs="italic">
          {t("hidden")}
        </Text>
      </td>
    );
  }
  return (
    <td className={classes.value} data-side={line.changed ? side : undefined}>
      {value ?? ""}
    </td>
  );
}
