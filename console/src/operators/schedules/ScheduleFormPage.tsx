import {
  Alert,
  Button,
  Group,
  NumberInput,
  SegmentedControl,
  Select,
  SimpleGrid,
  Stack,
  Switch,
  TagsInput,
  Text,
  Textarea,
  TextInput,
} from "@mantine/core";
import { useDebouncedValue } from "@mantine/hooks";
import { useQuery } from "@tanstack/react-query";
import { type FormEvent, useMemo, useState } from "react";
import { useNavigate, useParams } from "react-router";
import {
  api,
  data,
  ifMatch,
  keys,
  type MisfirePolicy,
  type OverlapPolicy,
  type ScheduleIn,
  type ScheduleOut,
} from "../../api";
import { errorWords, Loaded, Page, Panel, ProblemAlert, Time, useAct } from "../../components";
import { useText } from "../../i18n";
import { useTaskTypes } from "../../live/taskTypes";
import { isLabel, labelLines, labelsOf } from "../parts/labels";
import { SchemaForm } from "../parts/SchemaForm";
import { inZone, zones } from "./rhythm";
import { scheduleFormTexts, scheduleTexts } from "./schedules.texts";

const OVERLAPS = ["queue_all", "queue_one", "skip", "cancel_running"] as const;

type Kind = "cron" | "interval" | "once";

/** Make a schedule, or change one: the next due times are shown while it is written. */
export default function ScheduleFormPage() {
  const t = useText(scheduleFormTexts);
  const { uid } = useParams();
  const query = useQuery({
    queryKey: keys.scheduleForm(uid),
    queryFn: () => data(api.GET("/v1/schedules/{schedule_id}", { params: { path: { schedule_id: uid ?? "" } } })),
    enabled: uid !== undefined,
    staleTime: Number.POSITIVE_INFINITY, // a form being edited must not change
    gcTime: 0,
  });
  const form = (schedule: ScheduleOut | null) => (
    <Page title={schedule ? t("edit", { name: schedule.name }) : t("create")}>
      <ScheduleForm schedule={schedule} />
    </Page>
  );
  return uid === undefined ? form(null) : <Loaded query={query}>{form}</Loaded>;
}

function ScheduleForm({ schedule }: { schedule: ScheduleOut | null }) {
  const t = useText(scheduleFormTexts);
  const words = useText(scheduleTexts);
  const navigate = useNavigate();
  const types = useTaskTypes();
  const own = Intl.DateTimeFormat().resolvedOptions().timeZone;
  const [form, setForm] = useState(() => ({
    name: schedule?.name ?? "",
    type: schedule?.type ?? "",
    description: schedule?.description ?? "",
    kind: (schedule === null || schedule.cron ? "cron" : schedule.interval ? "interval" : "once") as Kind,
    cron: schedule?.cron ?? "0 9 * * *",
    interval: schedule?.interval ?? 3600,
    at: localValue(schedule?.next_run ?? null),
    timezone: schedule?.timezone ?? own,
    misfire: (schedule?.misfire_policy ?? "latest") as MisfirePolicy,
    concurrent: schedule?.max_concurrent ?? 1,
    retries: schedule?.max_retries ?? 3,
    duration: schedule?.max_duration_seconds ?? 3600,
    grace: schedule?.timeout_grace_period ?? 30,
    priority: schedule?.priority ?? 0,
    enabled: schedule?.enabled ?? true,
    overlap: (schedule?.overlap_policy ?? "queue_all") as OverlapPolicy,
    waiting: schedule?.max_waiting ?? null,
    labels: labelLines(schedule?.labels ?? {}),
  }));
  const [payload, setPayload] = useState<unknown>(schedule?.data ?? null);
  const { busy, error, attempt } = useAct(keys.schedules.all);
  const set = (changes: Partial<typeof form>) => setForm((before) => ({ ...before, ...changes }));
  const known = types.data?.filter((type) => schedule !== null || !type.name.startsWith("headrace.")) ?? [];
  const chosen = known.find((type) => type.name === form.type);

  const submit = (event: FormEvent) => {
    event.preventDefault();
    const body = {
      name: form.name,
      description: form.description || null,
      timezone: form.timezone,
      misfire_policy: form.misfire,
      max_concurrent: form.concurrent,
      max_retries: form.retries,
      max_duration_seconds: form.duration,
      timeout_grace_period: form.grace,
      priority: form.priority,
      enabled: form.enabled,
      overlap_policy: form.overlap,
      max_waiting: form.overlap === "queue_all" ? form.waiting : null,
      labels: labelsOf(form.labels),
      data: payload as ScheduleIn["data"],
      cron: form.kind === "cron" ? form.cron : undefined,
      interval: form.kind === "interval" ? form.interval : undefined,
      run_at: form.kind === "once" && form.at ? new Date(form.at).toISOString() : undefined,
    };
    return attempt(
      async () => {
        const saved =
          schedule === null
            ? await data(api.POST("/v1/schedules", { body: { ...body, type: form.type } }))
            : await data(
                api.PATCH("/v1/schedules/{schedule_id}", {
                  params: { path: { schedule_id: schedule.id } },
                  headers: ifMatch(schedule.version),
                  body,
                }),
              );
        void navigate(`/operators/schedules/${saved.id}`);
      },
      schedule === null ? t("created") : t("saved"),
    );
  };

  return (
    <form onSubmit={(event) => void submit(event)}>
      <Stack>
        {types.data && known.length === 0 && schedule === null && <Alert color="yellow">{t("noTypes")}</Alert>}
        <Panel>
          <SimpleGrid cols={{ base: 1, sm: 2 }}>
            <TextInput
              label={t("name")}
              required
              maxLength={255}
              value={form.name}
              onChange={(event) => set({ name: event.currentTarget.value })}
            />
            <Select
              label={t("type")}
              placeholder={t("choose")}
              required
              searchable
              disabled={schedule !== null}
              description={schedule !== null ? t("typeFixed") : chosen?.description}
              data={schedule ? [schedule.type] : known.map((type) => type.name)}
              value={form.type || null}
              onChange={(type) => {
                set({ type: type ?? "" });
                setPayload(known.find((each) => each.name === type)?.payload_schema ? {} : null);
              }}
            />
          </SimpleGrid>
          <Textarea
            mt="sm"
            label={t("description")}
            autosize
            value={form.description}
            onChange={(event) => set({ description: event.currentTarget.value })}
          />
        </Panel>
        <Panel title={t("when")}>
          <SimpleGrid cols={{ base: 1, md: 2 }}>
            <Stack>
              <SegmentedControl
                styles={{ label: { whiteSpace: "normal", paddingInline: 6 } }}
                fullWidth
                value={form.kind}
                onChange={(kind) => set({ kind: kind as Kind })}
                data={[
                  { value: "cron", label: t("cron") },
                  { value: "interval", label: t("interval") },
                  { value: "once", label: t("once") },
                ]}
              />
              {form.kind === "cron" && (
                <TextInput
                  label={t("cron")}
                  description={t("cronText")}
                  required
                  value={form.cron}
                  onChange={(event) => set({ cron: event.currentTarget.value })}
                  styles={{ input: { fontFamily: "var(--mantine-font-family-monospace)" } }}
                />
              )}
              {form.kind === "interval" && (
                <NumberInput
                  label={t("seconds")}
                  required
                  min={1}
                  value={form.interval}
                  onChange={(value) => set({ interval: Number(value) })}
                />
              )}
              {form.kind === "once" && (
                <TextInput
                  type="datetime-local"
                  label={t("at")}
                  required
                  value={form.at}
                  onChange={(event) => set({ at: event.currentTarget.value })}
                />
              )}
              {form.kind === "cron" && (
                <Select
                  label={t("zone")}
                  searchable
                  data={zones()}
                  value={form.timezone}
                  allowDeselect={false}
                  onChange={(timezone) => set({ timezone: timezone ?? "UTC" })}
                />
              )}
              <Switch
                label={t("enabled")}
                checked={form.enabled}
                onChange={(event) => set({ enabled: event.currentTarget.checked })}
              />
            </Stack>
            {form.kind !== "once" && <Preview {...form} />}
          </SimpleGrid>
        </Panel>
        {(chosen || schedule) && (
          <Panel title={t("payload")}>
            <SchemaForm key={form.type} schema={chosen?.payload_schema ?? null} value={payload} onChange={setPayload} />
          </Panel>
        )}
        <Panel title={t("rules")}>
          <SimpleGrid cols={{ base: 1, sm: 2, md: 3 }}>
            <Select
              label={t("misfire")}
              data={[
                { value: "latest", label: words("latest") },
                { value: "all", label: words("all") },
                { value: "none", label: words("nothing") },
              ]}
              value={form.misfire}
              allowDeselect={false}
              onChange={(misfire) => set({ misfire: (misfire ?? "latest") as MisfirePolicy })}
            />
            <Count
              label={t("concurrent")}
              least={1}
              value={form.concurrent}
              onChange={(concurrent) => set({ concurrent })}
            />
            <Select
              label={t("overlap")}
              description={t(`overlap-${form.overlap}`)}
              inputWrapperOrder={["label", "input", "description"]}
              data={OVERLAPS.map((value) => ({ value, label: t(value) }))}
              value={form.overlap}
              allowDeselect={false}
              onChange={(overlap) => set({ overlap: (overlap ?? "queue_all") as OverlapPolicy })}
            />
            {form.overlap === "queue_all" && (
              <NumberInput
                label={t("waiting")}
                placeholder={t("noLimit")}
                min={1}
                allowDecimal={false}
                value={form.waiting ?? ""}
                onChange={(typed) => set({ waiting: typed === "" ? null : Number(typed) })}
              />
            )}
            <Count label={t("retries")} value={form.retries} onChange={(retries) => set({ retries })} />
            <Count label={t("duration")} least={1} value={form.duration} onChange={(duration) => set({ duration })} />
            <Count label={t("grace")} value={form.grace} onChange={(grace) => set({ grace })} />
            <Count
              label={t("priority")}
              least={-1_000_000}
              value={form.priority}
              onChange={(priority) => set({ priority })}
            />
          </SimpleGrid>
          <TagsInput
            mt="md"
            label={t("labels")}
            description={t("labelsText")}
            placeholder={t("labelsHint")}
            value={form.labels}
            error={form.labels.some((line) => !isLabel(line)) ? t("labelsWrong") : undefined}
            onChange={(labels) => set({ labels })}
            maxTags={8}
          />
        </Panel>
        {error !== null && <ProblemAlert error={error} />}
        <Group justify="flex-end">
          <Button type="submit" loading={busy} disabled={payload === undefined || !form.labels.every(isLabel)}>
            {schedule === null ? t("createIt") : t("save")}
          </Button>
        </Group>
      </Stack>
    </form>
  );
}

function Count({
  label,
  value,
  least = 0,
  onChange,
}: {
  label: string;
  value: number;
  least?: number;
  onChange: (value: number) => void;
}) {
  return (
    <NumberInput
      label={label}
      min={least}
      allowDecimal={false}
      value={value}
      onChange={(typed) => typed !== "" && onChange(Number(typed))}
    />
  );
}

/** When it would run, in the zone that is chosen: asked of the server, which will keep the schedule. */
function Preview({ kind, cron, interval, timezone }: { kind: Kind; cron: string; interval: number; timezone: string }) {
  const t = useText(scheduleFormTexts);
  const asked = useMemo(
    () => (kind === "cron" ? { cron, timezone, count: 6 } : { interval, timezone, count: 6 }),
    [kind, cron, interval, timezone],
  );
  const [body] = useDebouncedValue(asked, 300);
  const query = useQuery({
    queryKey: keys.schedulePreview(body),
    queryFn: () => data(api.POST("/v1/schedules/preview", { body })),
    retry: false,
  });
  return (
    <div>
      <Text fw={600} size="sm">
        {t("preview")}
      </Text>
      <Text size="xs" c="dimmed" mb="xs">
        {t("previewIn", { zone: timezone })}
      </Text>
      {query.error ? (
        <Text size="sm" style={{ color: "var(--bad-ink)" }} role="alert">
          {errorWords(query.error)}
        </Text>
      ) : (
        <Stack gap={6} aria-live="polite">
          {(query.data?.times ?? []).map((at) => (
            <Group key={at} justify="space-between" gap="sm" wrap="nowrap">
              <Text size="sm">{inZone(at, timezone)}</Text>
              <Text size="sm" c="dimmed" span>
                <Time at={at} />
              </Text>
            </Group>
          ))}
        </Stack>
      )}
    </div>
  );
}

/** An instant as `datetime-local` wants it: the reader's own time, without a zone. */
function localValue(at: string | null): string {
  if (at === null) return "";
  const date = new Date(at);
  return new Date(date.getTime() - date.getTimezoneOffset() * 60_000).toISOString().slice(0, 16);
}
