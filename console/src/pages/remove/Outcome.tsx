import { Alert, Anchor, Button, Stack, Text } from "@mantine/core";
import type { ReactNode } from "react";
import { Link } from "react-router";
import { api, data, keys, type RemovalItemOut, type RemovalOut } from "../../api";
import { IconInfoCircle, Panel, StateBadge, Time, useAct } from "../../components";
import { formats, useLanguage, useText } from "../../i18n";
import { useMe } from "../../session/store";
import { ASKS } from "./batch";
import { nameOf } from "./CandidateList";
import { cropAround } from "./crop";
import { isShown, resultUrl } from "./media";
import classes from "./Outcome.module.css";
import { useNaturalSize, useResult } from "./ResultView";
import { removalTexts, removeTexts } from "./remove.texts";
import { spans } from "./spans";
import { shownAsFound } from "./suspects";

const SHOWN = 8;

/** What was taken off, by name. */
function Found({ removal }: { removal: RemovalOut }) {
  const t = useText(removalTexts);
  const words = useText(removeTexts);
  const language = useLanguage();
  const slides = removal.media_type === "PPT";
  const candidates = shownAsFound(removal.candidates);
  if (candidates.length === 0) return null;
  const rows = candidates
    .slice(0, SHOWN)
    .map((each): [string, ReactNode] => [
      nameOf(each) +
        (each.pages?.length ? ` ${words(slides ? "onSlides" : "onPages", { pages: spans(each.pages) })}` : ""),
      t("sure", { percent: formats.percent(each.score, language) }),
    ]);
  return (
    <>
      <Rows rows={rows} />
      {candidates.length > SHOWN && (
        <Text size="xs" c="dimmed" mt={6}>
          {t("moreFound", { n: candidates.length - SHOWN })}
        </Text>
      )}
    </>
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

type VerdictName = keyof typeof VERDICTS;

export const VERDICTS = { CLEAN: "verdictClean", LOOK: "verdictLook", POOR: "verdictPoor" } as const;

/** The one verdict on a result, as the server has it; null before it is known, and for files without one. */
export function useVerdict(removal: RemovalOut): VerdictName | null {
  const metrics = useResult(removal.id).data?.metrics as Metrics | null | undefined;
  return removal.accept_poor && metrics?.verdict !== "CLEAN" ? "POOR" : (metrics?.verdict ?? null);
}

/** The verdict comes first, with the place to look at, and what can be done about it. */
export function Verdict({ removal, children }: { removal: RemovalOut; children: ReactNode }) {
  const t = useText(removalTexts);
  const verdict = useVerdict(removal);
  const texts = { CLEAN: t("cleanText"), LOOK: t("lookText"), POOR: t("takenAsIsText") };
  return (
    <Panel>
      {verdict && (
        <Stack gap={6} data-testid={verdict === "CLEAN" ? "verdict" : "still-visible"} role="status">
          <div>
            <StateBadge state={verdict} label={t(VERDICTS[verdict])} tone={verdict === "CLEAN" ? "good" : "warn"} />
          </div>
          <Text size="sm">{texts[verdict]}</Text>
          {verdict !== "CLEAN" && <LookHere removal={removal} />}
        </Stack>
      )}
      <Stack gap={6} mt={verdict ? "sm" : 0}>
        {children}
      </Stack>
    </Panel>
  );
}

/** What may be left, enlarged: the surroundings of the mark in the result. */
function LookHere({ removal }: { removal: RemovalOut }) {
  const t = useText(removalTexts);
  const mimeType = useResult(removal.id).data?.mime_type ?? "";
  const shown = removal.media_type === "IMAGE" && isShown(mimeType);
  const size = useNaturalSize(shown ? resultUrl(removal.id) : "");
  if (!shown || size === null || size === "none") return null;
  const crop = cropAround(
    removal.candidates.map(({ box }) => box),
    size,
  );
  if (crop === null) return null;
  const style = {
    aspectRatio: `${crop.width} / ${crop.height}`,
    backgroundImage: `url("${resultUrl(removal.id)}")`,
    backgroundSize: `${(size.width / crop.width) * 100}% ${(size.height / crop.height) * 100}%`,
    backgroundPosition: `${position(crop.x, crop.width, size.width)}% ${position(crop.y, crop.height, size.height)}%`,
  };
  return (
    <div className={classes.crop} style={style} role="img" aria-label={t("verdictLook")} data-testid="look-here" />
  );
}

const position = (from: number, length: number, whole: number) =>
  whole > length ? (from / (whole - length)) * 100 : 0;

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

/** What was found and measured, for those who ask. */
export function Details({ removal }: { removal: RemovalOut }) {
  const t = useText(removalTexts);
  const { user } = useMe();
  return (
    <details className={classes.details}>
      <summary>{t("details")}</summary>
      <Found removal={removal} />
      <Measured taskId={removal.id} />
      {user.role === "ADMIN" && (
        <Anchor component={Link} to={`/operators/tasks/${removal.id}`} size="sm">
          {t("task")}
        </Anchor>
      )}
    </details>
  );
}

function Measured({ taskId }: { taskId: string }) {
  const t = useText(removalTexts);
  const language = useLanguage();
  const metrics = useResult(taskId).data?.metrics as Metrics | null | undefined;
  if (!metrics) return null;
  const share = (value: number) => formats.percent(value, language);
  const db = metrics.untouched_db;
  const rows: [string, string][] = [];
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
    <>
      <Rows rows={rows} />
      {metrics.warnings?.map((warning) => (
        <Text key={warning} size="xs" c="dimmed" mt={6}>
          {warning}
        </Text>
      ))}
    </>
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
