import type { ReactNode } from "react";
import { commonTexts } from "../../components";
import { useText } from "../../i18n";
import classes from "./SelectionBar.module.css";

/** How many rows are selected, and what can be done with them. */
export function SelectionBar({ count, children }: { count: number; children: ReactNode }) {
  const common = useText(commonTexts);
  return (
    <div className={classes.bar}>
      <b>{common("selected", { n: count })}</b>
      {children}
    </div>
  );
}
