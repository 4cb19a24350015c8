import { Tooltip } from "@mantine/core";
import { Link } from "react-router";
import type { ExecutionItemOut } from "../../api";
import { stateTexts, toneOf, useNow } from "../../components";
import { formats, useLanguage, wordFor } from "../../i18n";
import classes from "./Timeline.module.css";

const ROWS = 12;

/** Runs as bars over time, the newest at the top: what overlapped, what took long, what failed. */
export function Timeline({ runs }: { runs: readonly ExecutionItemOut[] }) {
  const language = useLanguage();
  const now = useNow();
  const shown = runs.slice(0, ROWS).map((run) => {
    const from = Date.parse(run.started_at ?? run.scheduled_at);
    const to = run.finished_at ? Date.parse(run.finished_at) : Math.max(now, from);
    return { run, from, to };
  });
  const first = Math.min(...shown.map((each) => each.from));
  const last = Math.max(...shown.map((each) => each.to), first + 1000);
  const span = last - first;
  const ticks = [0, 0.25, 0.5, 0.75, 1].map((share) => first + share * span);
  const locale = language === "zh" ? "zh-CN" : "en";
  const isLong = span > 36 * 3_600_000;
  const tick = (time: number) =>
    new Date(time).toLocaleString(
      locale,
      isLong
        ? { month: "short", day: "numeric", hour: "2-digit", minute: "2-digit", hour12: false }
        : { hour: "2-digit", minute: "2-digit", second: "2-digit", hour12: false },
    );
  return (
    <div className={classes.frame}>
      {shown.map(({ run, from, to }) => {
        const words = `${wordFor(stateTexts, run.status)} · ${formats.absolute(new Date(from), language)} · ${formats.duration(to - from, language)}`;
        return (
          <div key={run.id} className={classes.row}>
            <Tooltip label={words}>
              <Link
                to={`/operators/runs/${run.id}`}
                aria-label={words}
                className={classes.bar}
                data-tone={toneOf(run.status)}
                style={{ left: `${(100 * (from - first)) / span}%`, width: `${(100 * (to - from)) / span}%` }}
              />
            </Tooltip>
          </div>
        );
      })}
      <div className={classes.axis} aria-hidden="true">
        {ticks.map((time) => (
          <span key={time}>{tick(time)}</span>
        ))}
      </div>
    </div>
  );
}
