import { Alert, Button, Collapse, Group, NumberInput, Select, SimpleGrid, Stack, Text, TextInput } from "@mantine/core";
import { useDisclosure } from "@mantine/hooks";
import { type FormEvent, useState } from "react";
import { useNavigate, useSearchParams } from "react-router";
import { api, data, query, type TaskIn, type TaskTypeOut } from "../../api";
import { Empty, IconSend, IconServer, Loaded, Page, Panel, ProblemAlert, useAct } from "../../components";
import { useText } from "../../i18n";
import { useTaskTypes } from "../../live/taskTypes";
import { SchemaForm } from "../parts/SchemaForm";
import { submitTexts } from "./tasks.texts";

/** Submit a task by a form that is made from its type's schema. */
export default function SubmitPage() {
  const t = useText(submitTexts);
  const [params, setParams] = useSearchParams();
  const query = useTaskTypes();
  const types = (query.data ?? []).filter((type) => !type.name.startsWith("headrace."));
  const chosen = types.find((type) => type.name === params.get("type"));
  return (
    <Page title={t("title")} text={t("text")}>
      <Loaded query={query}>
        {() => (
          <Panel>
            {types.length === 0 ? (
              <Empty icon={IconServer} title={t("noTypes")} text={t("noTypesText")} />
            ) : (
              <Stack>
                <Select
                  label={t("type")}
                  placeholder={t("choose")}
                  searchable
                  data={types.map((type) => type.name)}
                  value={chosen?.name ?? null}
                  onChange={(name) => setParams(name ? { type: name } : {}, { replace: true })}
                  description={chosen?.description}
                />
                {chosen && <SubmitForm key={chosen.name} type={chosen} />}
              </Stack>
            )}
          </Panel>
        )}
      </Loaded>
    </Page>
  );
}

function SubmitForm({ type }: { type: TaskTypeOut }) {
  const t = useText(submitTexts);
  const navigate = useNavigate();
  const [payload, setPayload] = useState<unknown>(type.payload_schema ? {} : null);
  const [more, { toggle }] = useDisclosure(false);
  const [options, setOptions] = useState<Omit<TaskIn, "type" | "payload">>({});
  const { busy, error, attempt } = useAct();
  const submit = (event: FormEvent) => {
    event.preventDefault();
    return attempt(async () => {
      const body: TaskIn = { type: type.name, payload: payload as TaskIn["payload"], ...options };
      const task = await data(api.POST("/v1/tasks", { body }));
      void navigate(`/operators/tasks/${task.id}`);
    }, t("submitted"));
  };
  const set = (changes: Partial<typeof options>) => setOptions((before) => query({ ...before, ...changes }));
  const number = (value: string | number) => (value === "" ? null : Number(value));
  return (
    <form onSubmit={(event) => void submit(event)}>
      <Stack>
        {type.workers === 0 && <Alert color="yellow">{t("noWorker")}</Alert>}
        <Text fw={600}>{t("payload")}</Text>
        <SchemaForm schema={type.payload_schema} value={payload} onChange={setPayload} />
        <Group>
          <Button variant="subtle" size="compact-sm" onClick={toggle} aria-expanded={more}>
            {t("more")}
          </Button>
        </Group>
        <Collapse expanded={more}>
          <SimpleGrid cols={{ base: 1, sm: 2 }}>
            <TextInput
              label={t("taskTitle")}
              value={options.title ?? ""}
              onChange={(event) => set({ title: event.currentTarget.value })}
            />
            <TextInput
              label={t("queue")}
              placeholder={type.queue}
              value={options.queue ?? ""}
              onChange={(event) => set({ queue: event.currentTarget.value })}
            />
            <NumberInput
              label={t("priority")}
              placeholder={String(type.priority)}
              value={options.priority ?? ""}
              onChange={(value) => set({ priority: number(value) })}
            />
            <TextInput
              type="datetime-local"
              label={t("runAt")}
              onChange={(event) =>
                set({ run_at: event.currentTarget.value ? new Date(event.currentTarget.value).toISOString() : null })
              }
            />
            <NumberInput
              label={t("attempts")}
              min={1}
              placeholder={String(type.max_attempts)}
              value={options.max_attempts ?? ""}
              onChange={(value) => set({ max_attempts: number(value) })}
            />
            <NumberInput
              label={t("timeout")}
              min={1}
              placeholder={type.timeout_seconds ? String(type.timeout_seconds) : t("asType")}
              value={options.timeout_seconds ?? ""}
              onChange={(value) => set({ timeout_seconds: number(value) })}
            />
          </SimpleGrid>
        </Collapse>
        {error !== null && <ProblemAlert error={error} />}
        <Group justify="flex-end">
          <Button type="submit" loading={busy} disabled={payload === undefined} leftSection={<IconSend size={16} />}>
            {t("submit")}
          </Button>
        </Group>
      </Stack>
    </form>
  );
}
