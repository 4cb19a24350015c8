import "@mantine/charts/styles.layer.css";
import { BarChart } from "@mantine/charts";
import { useQuery } from "@tanstack/react-query";
import { api, data, keys, type UsedDayOut } from "../../api";
import { Empty, IconChartBar, Loading, Panel, ProblemAlert } from "../../components";
import { formats, useLanguage, useText } from "../../i18n";
import { everyDay } from "./days";
import { usageTexts } from "./usage.texts";

const DAYS = 30;

/** A plot of use by day; days without any are drawn, too. */
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
  const rows = days.map(({ day, used: units, released }) => ({
    day: formats.shortDate(new Date(`${day}T00:00:00`), language),
    used: units,
    released,
  }));
  return (
    <Panel title={t("byDay")} text={t("byDayText")}>
      {used.data.length === 0 ? (
        <Empty icon={IconChartBar} title={t("noUse")} />
      ) : (
        <BarChart
          h={260}
          data={rows}
          dataKey="day"
          type="stacked"
          withLegend
          gridAxis="x"
          yAxisProps={{ allowDecimals: false }}
          tickLine="none"
          valueFormatter={(value) => formats.number(value, language)}
          series={[
            { name: "used", label: t("used"), color: "water.7" },
            { name: "released", label: t("released"), color: "gray.5" },
          ]}
          barProps={{ isAnimationActive: false }}
        />
      )}
    </Panel>
  );
}
