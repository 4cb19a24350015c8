import { Tabs } from "@mantine/core";
import { Page, useFilters } from "../../components";
import { useText } from "../../i18n";
import { ApiKeys } from "./ApiKeys";
import { accountTexts } from "./account.texts";
import { Leave } from "./Leave";
import { Profile } from "./Profile";
import { Sessions } from "./Sessions";

const FIRST = { tab: "profile" };

export default function AccountPage() {
  const t = useText(accountTexts);
  const filters = useFilters(FIRST);
  return (
    <Page title={t("title")} text={t("text")}>
      <Tabs value={filters.values.tab} onChange={(tab) => filters.set({ tab: tab ?? "profile" })} keepMounted={false}>
        <Tabs.List mb="lg">
          <Tabs.Tab value="profile">{t("profile")}</Tabs.Tab>
          <Tabs.Tab value="keys">{t("keys")}</Tabs.Tab>
          <Tabs.Tab value="sessions">{t("sessions")}</Tabs.Tab>
          <Tabs.Tab value="leave">{t("leave")}</Tabs.Tab>
        </Tabs.List>
        <Tabs.Panel value="profile">
          <Profile />
        </Tabs.Panel>
        <Tabs.Panel value="keys">
          <ApiKeys />
        </Tabs.Panel>
        <Tabs.Panel value="sessions">
          <Sessions />
        </Tabs.Panel>
        <Tabs.Panel value="leave">
          <Leave />
        </Tabs.Panel>
      </Tabs>
    </Page>
  );
}
