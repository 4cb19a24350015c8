import { Tabs } from "@mantine/core";
import { lazy, Suspense } from "react";
import { Loading, Page, useFilters } from "../../components";
import { useText } from "../../i18n";
import { Balance } from "./Balance";
import { Ledger } from "./Ledger";
import { Orders } from "./Orders";
import { Plans } from "./Plans";
import { usageTexts } from "./usage.texts";

// The chart library is the largest thing that pages load; it comes when it is looked at.
const UsedDays = lazy(() => import("./UsedDays"));

const FIRST = { tab: "overview" };

export default function UsagePage() {
  const t = useText(usageTexts);
  const filters = useFilters(FIRST);
  return (
    <Page title={t("title")} text={t("text")}>
      <Tabs value={filters.values.tab} onChange={(tab) => filters.set({ tab: tab ?? "overview" })} keepMounted={false}>
        <Tabs.List mb="lg">
          <Tabs.Tab value="overview">{t("overview")}</Tabs.Tab>
          <Tabs.Tab value="plans">{t("plans")}</Tabs.Tab>
          <Tabs.Tab value="ledger">{t("ledger")}</Tabs.Tab>
          <Tabs.Tab value="orders">{t("orders")}</Tabs.Tab>
        </Tabs.List>
        <Tabs.Panel value="overview">
          <Balance />
          <Suspense fallback={<Loading />}>
            <UsedDays />
          </Suspense>
        </Tabs.Panel>
        <Tabs.Panel value="plans">
          <Plans />
        </Tabs.Panel>
        <Tabs.Panel value="ledger">
          <Ledger />
        </Tabs.Panel>
        <Tabs.Panel value="orders">
          <Orders />
        </Tabs.Panel>
      </Tabs>
    </Page>
  );
}
