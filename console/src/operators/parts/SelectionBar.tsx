import { Button } from "@mantine/core";
import type { ReactNode } from "react";
import { commonTexts } from "../../components";
import { useText } from "../../i18n";
import classes from "./SelectionBar.module.css";

/** How many rows are selected, and what can be done with them. */
export function SelectionBar({
  count,
  onClear,
  children,
}: {
  count: number;
  onClear: () => void;
  children: ReactNode;
}) {
  const common = useText(commonTexts);
  return (
    <div className={classes.bar}>
      <b>{common("selected", { n: count })}</b>
      {children}
      <Button size="compact-sm" variant="subtle" onClick={onClear}>
        {common("clearSelection")}
      </Button>
    </div>
  );
}
