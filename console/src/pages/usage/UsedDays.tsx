import { useQuery } from "@tanstack/react-query";
import { api, data, keys, type UsedDayOut } from "../../api";
import { Empty, IconChartBar, Loading, Panel, ProblemAlert } from "../../components";
import { formats, useLanguage, useText } from "../../i18n";
import { everyDay } from "./days";
import classes from "./UsedDays.module.css";
import { usageTexts } from "./usage.texts";

const DAYS = 30;

/** A plot of use by day; days without any are drawn, too. Plain boxes: a library for charts is a hundred kilobytes. */
export default function UsedDays() {
  const t = useText(usageTexts);
  const language = useLanguage();
  const used = useQuery({
    queryKey: keys.usage.days,
    queryFn: async (): Promise<UsedDayOut[]> => {
      const since = new Date(Date.now() - (DAYS - 1) * 86_400_000).toISOString().slice(0, 10);
      return (await data(api.GET("/v1/usage/days", { params: { query: { since } } }))).days;
    },
  });
  if (used.error) return <ProblemAlert error={used.error} onRetry={() => void used.refetch()} />;
  if (!used.data) return <Loading />;
  const days = everyDay(used.data, DAYS, new Date());
  const most = Math.max(1, ...days.map((each) => each.used + each.released));
  const nameOf = (day: string) => formats.shortDate(new Date(`${day}T00:00:00`), language);
  const wordsOf = (each: UsedDayOut) =>
    `${nameOf(each.day)}: ${t("used")} ${each.used}${each.released ? `, ${t("released")} ${each.released}` : ""}`;
  return (
    <Panel title={t("byDay")} text={t("byDayText")}>
      {used.data.length === 0 ? (
        <Empty icon={IconChartBar} title={t("noUse")} />
      ) : (
        <>
          <div className={classes.legend} aria-hidden="true">
            <span data-kind="used">{t("used")}</span>
            <span data-kind="released">{t("released")}</span>
            <span className={classes.most}>{formats.number(most, language)}</span>
          </div>
          <ul className={classes.plot} aria-label={t("byDay")}>
            {days.map((each) => (
              <li key={each.day} title={wordsOf(each)} aria-label={wordsOf(each)}>
                <span data-kind="released" style={{ height: `${(each.released / most) * 100}%` }} />
                <span data-kind="used" style={{ height: `${(each.used / most) * 100}%` }} />
              </li>
            ))}
          </ul>
          <div className={classes.axis} aria-hidden="true">
            <span>{nameOf(days[0]?.day ?? "")}</span>
            <span>{nameOf(days.at(-1)?.day ?? "")}</span>
          </div>
        </>
      )}
    </Panel>
  );
}
