import { Alert, Button, Checkbox, Group, Modal, Stack, Text, TextInput } from "@mantine/core";
import { useState } from "react";
import { api, data, query, type VerifiedOut } from "../../api";
import { commonTexts, Fact, Facts, IconAlertTriangle, IconCircleCheck, ProblemAlert, useAct } from "../../components";
import { formats, useLanguage, useText } from "../../i18n";
import { auditTexts } from "./audit.texts";

/** Have the trail verified, and see what came of it. */
export function Verify({ opened, onClose }: { opened: boolean; onClose: () => void }) {
  const t = useText(auditTexts);
  const common = useText(commonTexts);
  const [month, setMonth] = useState("");
  const [whole, setWhole] = useState(false);
  const [found, setFound] = useState<VerifiedOut | null>(null);
  const { busy, error, attempt } = useAct();
  const verify = async () =>
    setFound(await data(api.POST("/v1/admin/audit/verify", { body: { ...query({ month }), whole } })));
  return (
    <Modal
      opened={opened}
      onClose={onClose}
      title={<Text fw={600}>{t("verifyTitle")}</Text>}
      size="lg"
      closeButtonProps={{ "aria-label": common("close") }}
    >
      <form
        onSubmit={(event) => {
          event.preventDefault();
          void attempt(verify);
        }}
      >
        <Stack>
          <Text size="sm">{t("verifyText")}</Text>
          <Group align="flex-end">
            <TextInput
              type="month"
              label={t("month")}
              value={month}
              onChange={(event) => setMonth(event.currentTarget.value)}
            />
            <Button type="submit" loading={busy}>
              {t("verify")}
            </Button>
          </Group>
          <Checkbox
            label={t("whole")}
            checked={whole}
            disabled={month !== ""}
            onChange={(event) => setWhole(event.currentTarget.checked)}
          />
          {busy && (
            <Text size="sm" c="dimmed" role="status">
              {t("verifying")}
            </Text>
          )}
          {error !== null && <ProblemAlert error={error} />}
          {found && !busy && error === null && <Result found={found} />}
        </Stack>
      </form>
    </Modal>
  );
}

function Result({ found }: { found: VerifiedOut }) {
  const t = useText(auditTexts);
  const language = useLanguage();
  const n = (value: number) => formats.number(value, language);
  const tone = found.ok ? "good" : "bad";
  return (
    <Alert
      role="status"
      icon={found.ok ? <IconCircleCheck /> : <IconAlertTriangle />}
      title={found.ok ? t("ok") : t("bad")}
      styles={{
        root: { background: `var(--${tone}-ground)` },
        title: { color: `var(--${tone}-ink)` },
        icon: { color: `var(--${tone}-ink)` },
        message: { color: "var(--ink)" },
      }}
    >
      {found.message && (
        <Text size="sm" mb="sm">
          {found.message}
        </Text>
      )}
      <Facts>
        <Fact name={t("events")}>{n(found.events)}</Fact>
        <Fact name={t("seals")}>{n(found.seals)}</Fact>
        <Fact name={t("unsealed")}>{n(found.unsealed)}</Fact>
        <Fact name={t("heads")}>{n(found.heads)}</Fact>
        {found.continued_from > 0 && <Fact name={t("continuedFrom")}>{n(found.continued_from)}</Fact>}
        {found.continued_from > 0 && found.whole_at !== null && (
          <Fact name={t("wholeAt")}>{formats.absolute(new Date(found.whole_at), language)}</Fact>
        )}
        {found.signed_up_to > 0 && <Fact name={t("signed")}>{n(found.signed_up_to)}</Fact>}
        {found.not_looked_at.length > 0 && (
          <Fact name={t("notLooked")}>{found.not_looked_at.map((day) => day.slice(0, 7)).join(", ")}</Fact>
        )}
      </Facts>
    </Alert>
  );
}
