import { Button, Group, SimpleGrid, Stack, TextInput } from "@mantine/core";
import { useQuery } from "@tanstack/react-query";
import { type FormEvent, useState } from "react";
import { api, data, ifMatch, keys } from "../../api";
import { commonTexts, Fact, Facts, Loading, Panel, ProblemAlert, Time, useAct } from "../../components";
import { useText } from "../../i18n";
import { PasswordField } from "../../session/EntranceForm";
import { accountTexts } from "./account.texts";
import { Email } from "./Email";
import { SecondFactor } from "./SecondFactor";

export function Profile() {
  const t = useText(accountTexts);
  const me = useQuery({ queryKey: keys.me, queryFn: async () => (await data(api.GET("/v1/me"))).user });
  if (!me.data) return <Loading />;
  return (
    <SimpleGrid cols={{ base: 1, md: 2 }}>
      <Panel title={t("profile")}>
        <Stack>
          <Facts>
            <Fact name={t("username")}>{me.data.username ?? "–"}</Fact>
            <Fact name={t("email")}>
              <Email email={me.data.email} />
            </Fact>
            <Fact name={t("role")}>{t(`role${me.data.role}`)}</Fact>
            <Fact name={t("since")}>
              <Time at={me.data.created_at} />
            </Fact>
          </Facts>
          <Mobile key={me.data.version} mobile={me.data.mobile ?? ""} version={me.data.version} />
        </Stack>
      </Panel>
      <Panel title={t("password")}>
        <ChangePassword />
      </Panel>
      <SecondFactor />
    </SimpleGrid>
  );
}

function Mobile({ mobile, version }: { mobile: string; version: number }) {
  const t = useText(accountTexts);
  const common = useText(commonTexts);
  const [value, setValue] = useState(mobile);
  const { error, attempt } = useAct(keys.me);
  const submit = (event: FormEvent) => {
    event.preventDefault();
    const body = { mobile: value.trim() || null };
    return attempt(() => api.PATCH("/v1/me", { params: { header: ifMatch(version) }, body }), common("saved"));
  };
  return (
    <form onSubmit={(event) => void submit(event)}>
      <Stack gap="xs">
        {error !== null && <ProblemAlert error={error} />}
        <Group align="flex-end">
          <TextInput
            flex={1}
            label={t("mobile")}
            placeholder={t("mobileHint")}
            type="tel"
            autoComplete="tel"
            value={value}
            onChange={(event) => setValue(event.currentTarget.value)}
          />
          <Button type="submit" variant="default" disabled={value === mobile}>
            {common("save")}
          </Button>
        </Group>
      </Stack>
    </form>
  );
}

function ChangePassword() {
  const t = useText(accountTexts);
  const [current, setCurrent] = useState("");
  const [fresh, setFresh] = useState("");
  const { busy, error, attempt } = useAct();
  const submit = async (event: FormEvent) => {
    event.preventDefault();
    const body = { current_password: current, new_password: fresh };
    if (await attempt(() => api.POST("/v1/auth/password", { body }), t("changed"))) {
      setCurrent("");
      setFresh("");
    }
  };
  return (
    <form onSubmit={(event) => void submit(event)}>
      <Stack gap="sm">
        {error !== null && <ProblemAlert error={error} />}
        <PasswordField label={t("current")} value={current} onChange={setCurrent} />
        <PasswordField fresh label={t("fresh")} value={fresh} onChange={setFresh} />
        <Group>
          <Button type="submit" variant="default" loading={busy}>
            {t("change")}
          </Button>
        </Group>
      </Stack>
    </form>
  );
}
