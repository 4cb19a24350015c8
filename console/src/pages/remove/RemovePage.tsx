import { Button, Checkbox, Radio, SegmentedControl, Stack, Text } from "@mantine/core";
import { useEffect, useRef, useState } from "react";
import { useNavigate } from "react-router";
import { isApiError, keys } from "../../api";
import { Page, Panel, ProblemAlert, useAct } from "../../components";
import { useText } from "../../i18n";
import { interruptedUploads } from "../../uploads/parts";
import { Columns } from "./Columns";
import { DropZone } from "./DropZone";
import { addFiles, type Basis, choose, ordered, restoreDraft, useDraft } from "./draft";
import { FileHead, FileStrip } from "./FileStrip";
import { NotOrdered } from "./NotOrdered";
import { isReady, type Ordered, order } from "./order";
import { Price, usePrice } from "./Price";
import { Recent } from "./Recent";
import classes from "./RemovePage.module.css";
import { removeTexts } from "./remove.texts";
import { FoundMarks, Workbench } from "./Workbench";

const BASES: readonly Basis[] = ["OWNER", "LICENSEE", "AUTHORIZED"];

export default function RemovePage() {
  const t = useText(removeTexts);
  const { files } = useDraft();
  useEffect(() => {
    void restoreDraft();
  }, []);
  const sending = files.some((file) => file.asset === null && file.error === null);
  useEffect(() => {
    if (!sending) return;
    const ask = (event: BeforeUnloadEvent) => event.preventDefault();
    window.addEventListener("beforeunload", ask);
    return () => window.removeEventListener("beforeunload", ask);
  }, [sending]);
  return (
    <Page title={t("title")} text={t("text")}>
      <Interrupted />
      {files.length === 0 ? <DropZone onFiles={addFiles} small={false} /> : <Draft />}
      <NotOrdered />
      <Recent />
    </Page>
  );
}

/** After a reload no page can read the file again by itself: choosing it again resumes its upload. */
function Interrupted() {
  const t = useText(removeTexts);
  const { files } = useDraft();
  const left = interruptedUploads().filter((name) => files.every((file) => file.name !== name));
  if (left.length === 0) return null;
  return (
    <Text size="sm" className={classes.interrupted} role="status">
      {t("interrupted", { names: left.join(", ") })}
    </Text>
  );
}

function Draft() {
  const t = useText(removeTexts);
  const { files, choices } = useDraft();
  const [wanted, setWanted] = useState<string | null>(null);
  const file = files.find((each) => each.key === wanted) ?? files[0];
  if (file === undefined) return null;
  const others = files.filter((each) => each !== file && each.asset !== null && each.error === null).length;
  return (
    <Columns aside="21rem">
      <Stack gap="sm">
        {files.length > 1 && <FileStrip files={files} current={file} onChange={setWanted} />}
        <FileHead file={file} />
        <Workbench key={file.key} file={file} />
        <DropZone onFiles={addFiles} small />
      </Stack>
      <Panel>
        <Stack gap="lg">
          <FoundMarks key={file.key} file={file} others={others} />
          <Choice
            label={t("quality")}
            value={choices.quality}
            onChange={(quality) => choose({ quality })}
            options={[
              ["STANDARD", t("standard"), t("standardText")],
              ["HIGH", t("high"), t("highText")],
            ]}
          />
          <Rights />
          <Start />
        </Stack>
      </Panel>
    </Columns>
  );
}

function Choice<T extends string>({
  label,
  value,
  onChange,
  options,
}: {
  label: string;
  value: T;
  onChange: (value: T) => void;
  options: readonly (readonly [T, string, string])[];
}) {
  return (
    <div>
      <Text size="sm" fw={600} mb={6}>
        {label}
      </Text>
      <SegmentedControl
        fullWidth
        aria-label={label}
        value={value}
        onChange={(chosen) => onChange(chosen as T)}
        data={options.map(([name, words]) => ({ value: name, label: words }))}
      />
      <Text size="xs" c="dimmed" mt={6}>
        {options.find(([name]) => name === value)?.[2]}
      </Text>
    </div>
  );
}

function Rights() {
  const t = useText(removeTexts);
  const { choices } = useDraft();
  return (
    <Stack gap="xs">
      <Radio.Group
        label={t("rights")}
        value={choices.basis}
        onChange={(basis) => choose({ basis: basis as Basis })}
        labelProps={{ fw: 600 }}
      >
        <Stack gap={6} mt={6}>
          {BASES.map((basis) => (
            <Radio key={basis} value={basis} label={t(`basis${basis}`)} size="sm" />
          ))}
        </Stack>
      </Radio.Group>
      <Checkbox
        checked={choices.declared}
        onChange={(event) => choose({ declared: event.currentTarget.checked })}
        label={t("declare")}
        size="sm"
        mt={4}
      />
    </Stack>
  );
}

function Start() {
  const t = useText(removeTexts);
  const navigate = useNavigate();
  const { files, choices } = useDraft();
  const { busy, error, attempt } = useAct(keys.removals.all, keys.assets.notOrdered, keys.usage.all);
  const ids = files.flatMap((file) => (file.asset ? [file.asset.id] : []));
  const price = usePrice(ids, choices.quality);
  const usable = files.filter((file) => file.error === null);
  const allThere = usable.length > 0 && usable.every((file) => file.asset !== null);
  const unmarked = usable.filter((file) => !isReady(file)).map((file) => file.name);
  const allReady = unmarked.length === 0;
  // What was taken before something else was refused belongs to what is ordered next.
  const made = useRef<Ordered[]>([]);
  const start = () =>
    attempt(async () => {
      await order(usable, choices, (keys, taken) => {
        made.current.push(taken);
        ordered(keys);
      });
      ordered(files.map((file) => file.key)); // those that could not be taken go as well
      const items = made.current.flatMap((each) => each.items);
      const batch = made.current.length === 1 ? made.current[0]?.batch_id : null;
      void navigate(
        items.length === 1
          ? `/remove/${items[0]?.id}`
          : batch
            ? `/remove/batch/${batch}`
            : `/remove/batch/${items.map((item) => item.id).join(",")}`,
      );
    });
  return (
    <Stack gap="sm" className={classes.start}>
      <Price price={price} refused={isApiError(error, "quota_exhausted")} note={t("afterwards")} />
      {error !== null && <ProblemAlert error={error} />}
      {allThere && !allReady && (
        <Text size="sm" c="dimmed">
          {usable.length > 1 ? t("notMarkedMany", { names: unmarked.join(", ") }) : t("notMarked")}
        </Text>
      )}
      {allThere && allReady && !choices.declared && price.data?.enough !== false && (
        <Text size="sm" c="dimmed">
          {t("declareFirst")}
        </Text>
      )}
      <Button
        size="md"
        disabled={!allThere || !allReady || !choices.declared}
        loading={busy}
        onClick={() => void start()}
      >
        {usable.length > 1 ? t("startMany", { n: usable.length }) : t("start")}
        {price.data && ` · ${price.data.free ? t("free") : t("units", { n: price.data.units })}`}
      </Button>
    </Stack>
  );
}
