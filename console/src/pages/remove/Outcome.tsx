import { Alert, Anchor, Button, Text } from "@mantine/core";
import type { ReactNode } from "react";
import { Link } from "react-router";
import { api, type CandidateOut, data, keys, type RemovalItemOut, type RemovalOut } from "../../api";
import { IconAlertTriangle, IconInfoCircle, Panel, StateBadge, Time, useAct } from "../../components";
import { formats, useLanguage, useText } from "../../i18n";
import { ASKS } from "./batch";
import { nameOf } from "./CandidateList";
import classes from "./Outcome.module.css";
import { useResult } from "./ResultView";
import { removalTexts, removeTexts } from "./remove.texts";
import { spans } from "./spans";

const SHOWN = 8;

export function Found({
  candidates,
  slides,
  children,
}: {
  candidates: readonly CandidateOut[];
  slides: boolean;
  children?: ReactNode;
}) {
  const t = useText(removalTexts);
  const words = useText(removeTexts);
  const language = useLanguage();
  return (
    <Panel title={t("found")}>
      {candidates.length === 0 && (
        <Text size="sm" c="dimmed">
          {t("foundNone")}
        </Text>
      )}
      {candidates.slice(0, SHOWN).map((each) => (
        <div key={each.id} className={classes.found}>
          <div style={{ flex: 1, minWidth: 0 }}>
            <Text size="sm" truncate>
              {nameOf(each)}
              {each.pages && each.pages.length > 0 && (
                <Text span size="xs" c="dimmed">
                  {" "}
                  {words(slides ? "onSlides" : "onPages", { pages: spans(each.pages) })}
                </Text>
              )}
            </Text>
            <div className={classes.bar}>
              <div style={{ width: `${Math.round(each.score * 100)}%` }} />
            </div>
          </div>
          <Text size="sm" className="figures">
            {t("sure", { percent: formats.percent(each.score, language) })}
          </Text>
        </div>
      ))}
      {candidates.length > SHOWN && (
        <Text size="xs" c="dimmed" mt={6}>
          {t("moreFound", { n: candidates.length - SHOWN })}
        </Text>
      )}
      {children}
    </Panel>
  );
}

interface Metrics {
  readonly confidence?: number | null;
  readonly changed_area?: number | null;
  readonly untouched_db?: number | null; // null: every pixel is as it was; left out: not measured
  readonly verdict?: "CLEAN" | "LOOK" | "POOR" | null;
  readonly computed?: number | null;
  readonly invented?: number | null;
  readonly warnings?: readonly string[];
  readonly same_as?: string | null; // an earlier removal with the same result
}

/** The result is a file that the user already had: it says so, and that it cost nothing. */
export function SameAsBefore({ removal }: { removal: RemovalOut }) {
  const t = useText(removalTexts);
  const metrics = useResult(removal.id).data?.metrics as Metrics | null | undefined;
  if (!metrics?.same_as) return null;
  return (
    <Alert icon={<IconInfoCircle />} data-testid="same-as-before">
      {t("sameAsBefore")}{" "}
      <Anchor component={Link} to={`/remove/${metrics.same_as}`}>
        {t("earlierResult")}
      </Anchor>
    </Alert>
  );
}

/** The note that the mark may still be visible comes first, by the verdict that decides the charge. */
export function StillVisible({ removal }: { removal: RemovalOut }) {
  const t = useText(removalTexts);
  const metrics = useResult(removal.id).data?.metrics as Metrics | null | undefined;
  const doubtful = metrics?.verdict === "LOOK" || metrics?.verdict === "POOR";
  if (!removal.accept_poor && !doubtful) return null;
  return (
    <Alert
      icon={<IconAlertTriangle />}
      role="alert"
      data-testid="still-visible"
      styles={{
        root: { background: "var(--warn-ground)" },
        icon: { color: "var(--warn-ink)" },
        message: { color: "var(--ink)" },
      }}
    >
      {removal.accept_poor ? t("takenAsIsText") : t("visibleText")}
    </Alert>
  );
}

/** How it ended, or how far it is: a result that was taken as it is does not pass for a good one. */
export function RemovalBadge({ removal }: { removal: Pick<RemovalItemOut, "status" | "accept_poor" | "error_code"> }) {
  const t = useText(removalTexts);
  if (removal.status === "FAILED" && ASKS.includes(removal.error_code ?? "")) {
    return (
      <StateBadge state={removal.status} label={t(removal.error_code === "NO_MARK" ? "noMark" : "asks")} tone="warn" />
    );
  }
  if (removal.status !== "SUCCEEDED" || !removal.accept_poor) return <StateBadge state={removal.status} />;
  return <StateBadge state={removal.status} label={t("takenAsIs")} tone="warn" />;
}

const VERDICTS = { CLEAN: "verdictClean", LOOK: "verdictLook", POOR: "verdictPoor" } as const;

/** What was measured of the result. */
export function Quality({ taskId }: { taskId: string }) {
  const t = useText(removalTexts);
  const language = useLanguage();
  const metrics = useResult(taskId).data?.metrics as Metrics | null | undefined;
  if (!metrics) return null;
  const share = (value: number) => formats.percent(value, language);
  const db = metrics.untouched_db;
  const rows: [string, string][] = [];
  if (metrics.verdict) rows.push([t("verdict"), t(VERDICTS[metrics.verdict])]);
  if (typeof metrics.confidence === "number") rows.push([t("confidence"), share(metrics.confidence)]);
  if (typeof metrics.changed_area === "number") rows.push([t("changed"), share(metrics.changed_area)]);
  if (db !== undefined) {
    rows.push([
      t("untouched"),
      db === null ? t("untouchedExact") : t(db >= 38 ? "untouchedDb" : "damaged", { db: db.toFixed(0) }),
    ]);
  }
  // Both are counts of pixels: what they are shares of is all that was changed.
  const pixels = (metrics.computed ?? 0) + (metrics.invented ?? 0);
  if (pixels > 0) {
    rows.push([t("computed"), share((metrics.computed ?? 0) / pixels)]);
    rows.push([t("invented"), share((metrics.invented ?? 0) / pixels)]);
  }
  if (rows.length === 0) return null;
  return (
    <Panel title={t("quality")}>
      <Rows rows={rows} />
      {metrics.warnings?.map((warning) => (
        <Text key={warning} size="xs" c="dimmed" mt={6}>
          {warning}
        </Text>
      ))}
    </Panel>
  );
}

/** The units of a result that is not good come back by one click, for a day. */
export function ReturnResult({ removal }: { removal: RemovalOut }) {
  const t = useText(removalTexts);
  const { busy, act } = useAct(keys.removals.all, keys.usage.all);
  if (!removal.returnable_until || Date.parse(removal.returnable_until) < Date.now()) return null;
  const give = () => data(api.POST("/v1/removals/{task_id}/return", { params: { path: { task_id: removal.id } } }));
  return (
    <Button variant="subtle" fullWidth loading={busy} onClick={() => void act(give, t("returnedTold"))}>
      {t("returnIt", { n: removal.charged ?? removal.units })}
    </Button>
  );
}

export function ResultFacts({ removal }: { removal: RemovalOut }) {
  const t = useText(removalTexts);
  const result = useResult(removal.id).data;
  const charged = removal.charged === 0 ? t("notCharged") : t("charged", { n: removal.charged ?? removal.units });
  const rows: [string, ReactNode][] = [[t("cost"), removal.returned_at ? t("returned") : charged]];
  if (result)
    rows.push([
      t("file"),
      result.size_bytes ? `${result.name ?? ""} · ${formats.bytes(result.size_bytes)}` : result.name,
    ]);
  if (result?.expire_at) rows.push([t("keptUntil"), <Time key="t" at={result.expire_at} />]);
  return (
    <Panel>
      <Rows rows={rows} />
    </Panel>
  );
}

function Rows({ rows }: { rows: readonly (readonly [string, ReactNode])[] }) {
  return rows.map(([name, value]) => (
    <div key={name} className={classes.found}>
      <Text size="sm" c="dimmed">
        {name}
      </Text>
      <Text
        size="sm"
        ta="right"
        className="figures"
        style={{ overflowWrap: "anywhere", flexShrink: 0, maxWidth: "65%" }}
        component="div"
      >
        {value}
      </Text>
    </div>
  ));
}
