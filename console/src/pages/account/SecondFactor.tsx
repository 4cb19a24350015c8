import { Button, Code, Group, Image, Stack, Text, TextInput } from "@mantine/core";
import { useQuery } from "@tanstack/react-query";
import { useState } from "react";
import { api, data, keys, type NewSecondFactorOut } from "../../api";
import { Dialog, Fact, Facts, FormDialog, Panel, Secret, TimeFact, tell } from "../../components";
import { useText } from "../../i18n";
import { PasswordField } from "../../session/EntranceForm";
import { accountTexts } from "./account.texts";

type Step = "on" | "off" | "codes";

/** Codes of an authenticator app at each login. */
export function SecondFactor() {
  const t = useText(accountTexts);
  const [step, setStep] = useState<Step | null>(null);
  const [codes, setCodes] = useState<readonly string[] | null>(null);
  const query = useQuery({ queryKey: keys.secondFactor, queryFn: () => data(api.GET("/v1/me/second-factor")) });
  const close = () => setStep(null);
  const made = (fresh: readonly string[]) => {
    close();
    setCodes(fresh);
  };
  if (!query.data) return null;
  return (
    <Panel title={t("factor")} text={t("factorText")}>
      {query.data.enabled_at === null ? (
        <Button variant="default" onClick={() => setStep("on")}>
          {t("factorTurnOn")}
        </Button>
      ) : (
        <Stack gap="sm">
          <Facts>
            <TimeFact name={t("factorOn")} at={query.data.enabled_at} />
            <Fact name={t("factorCodes")}>{query.data.recovery_codes}</Fact>
          </Facts>
          <Group>
            <Button variant="default" onClick={() => setStep("codes")}>
              {t("recoveryNew")}
            </Button>
            <Button variant="default" onClick={() => setStep("off")}>
              {t("factorTurnOff")}
            </Button>
          </Group>
        </Stack>
      )}
      {step === "on" && <TurnOn onClose={close} onDone={made} />}
      {(step === "off" || step === "codes") && <Confirmed step={step} onClose={close} onCodes={made} />}
      {codes && (
        <Dialog title={t("recoveryTitle")} onClose={() => setCodes(null)}>
          <Stack>
            <Text size="sm">{t("recoveryText")}</Text>
            <Secret title={t("recoveryTitle")} value={codes.join("\n")} />
          </Stack>
        </Dialog>
      )}
    </Panel>
  );
}

/** The password, then a picture to scan, then the first code. */
function TurnOn({ onClose, onDone }: { onClose: () => void; onDone: (codes: readonly string[]) => void }) {
  const t = useText(accountTexts);
  const [password, setPassword] = useState("");
  const [code, setCode] = useState("");
  const [made, setMade] = useState<NewSecondFactorOut | null>(null);
  const save = async () => {
    if (made === null) {
      setMade(await data(api.POST("/v1/me/second-factor", { body: { password } })));
      return;
    }
    const enabled = await data(api.POST("/v1/me/second-factor/enable", { body: { code } }));
    tell(t("factorIsOn"));
    onDone(enabled.recovery_codes);
  };
  return (
    <FormDialog
      title={t("factor")}
      onClose={onClose}
      onSave={save}
      changes={keys.secondFactor}
      action={made === null ? t("factorBegin") : t("factorTurnOn")}
      disabled={made === null ? password === "" : code === ""}
    >
      {made === null ? (
        <PasswordField label={t("password")} value={password} onChange={setPassword} data-autofocus />
      ) : (
        <>
          <Text size="sm">{t("factorScan")}</Text>
          {made.qr_code && <Image src={made.qr_code} alt="" w={200} h={200} mx="auto" bg="white" />}
          <Text size="sm">{t("factorSecret")}</Text>
          <Code style={{ overflowWrap: "anywhere" }}>{made.secret.replace(/(.{4})(?=.)/g, "$1 ")}</Code>
          <TextInput
            label={t("factorCode")}
            autoComplete="one-time-code"
            inputMode="numeric"
            value={code}
            onChange={(event) => setCode(event.currentTarget.value)}
          />
        </>
      )}
    </FormDialog>
  );
}

/** What takes the password and a code. */
function Confirmed({
  step,
  onClose,
  onCodes,
}: {
  step: "off" | "codes";
  onClose: () => void;
  onCodes: (codes: readonly string[]) => void;
}) {
  const t = useText(accountTexts);
  const [password, setPassword] = useState("");
  const [code, setCode] = useState("");
  const body = { password, code };
  const save = async () => {
    if (step === "codes") {
      onCodes((await data(api.POST("/v1/me/second-factor/recovery-codes", { body }))).recovery_codes);
      return;
    }
    await api.POST("/v1/me/second-factor/disable", { body });
    tell(t("factorIsOff"));
    onClose();
  };
  return (
    <FormDialog
      title={step === "off" ? t("factorTurnOff") : t("recoveryNew")}
      onClose={onClose}
      onSave={save}
      changes={keys.secondFactor}
      action={step === "off" ? t("factorTurnOff") : t("recoveryNew")}
      danger={step === "off"}
      disabled={password === "" || code === ""}
    >
      <PasswordField label={t("password")} value={password} onChange={setPassword} data-autofocus />
      <TextInput
        label={t("factorCodeOr")}
        autoComplete="one-time-code"
        value={code}
        onChange={(event) => setCode(event.currentTarget.value)}
      />
    </FormDialog>
  );
}
