import type { CSSProperties, ReactNode } from "react";
import classes from "./Columns.module.css";

/** A wide part with a narrow one (of this width) beside it, or below it on a narrow screen; null for the wide one alone. */
export function Columns({ aside, children }: { aside: string | null; children: ReactNode }) {
  return (
    <div className={aside === null ? undefined : classes.columns} style={{ "--aside": aside } as CSSProperties}>
      {children}
    </div>
  );
}
