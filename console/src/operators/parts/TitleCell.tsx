import type { ReactNode } from "react";
import classes from "./TitleCell.module.css";

/** The first cell of a row: its name, and under it what went wrong with it, or else what it is. */
export function TitleCell({ title, error, facts }: { title: ReactNode; error?: ReactNode; facts?: ReactNode }) {
  return (
    <>
      <span className={classes.title}>{title}</span>
      {error ? <span className={classes.error}>{error}</span> : facts && <span className={classes.facts}>{facts}</span>}
    </>
  );
}
