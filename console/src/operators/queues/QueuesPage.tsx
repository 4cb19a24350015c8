import { Button, Group, NumberInput, Text } from "@mantine/core";
import { useState } from "react";
import { api, data, ifMatch, keys, type QueueOut, useListing } from "../../api";
import {
  type Column,
  CursorTable,
  Empty,
  FormDialog,
  IconGauge,
  IconPlayerPause,
  IconPlayerPlay,
  IconStack2,
  Page,
  StateBadge,
  tell,
  useAct,
  useConfirm,
} from "../../components";
import { formats, useLanguage, useText } from "../../i18n";
import { pollEvery } from "../live/useChanges";
import { queueTexts } from "./queues.texts";

/** Queues: what is in them, whether they run, and how much at once. */
export default function QueuesPage() {
  const t = useText(queueTexts);
  const language = useLanguage();
  const confirm = useConfirm();
  const { busy, act } = useAct(keys.queues.all);
  const [limiting, setLimiting] = useState<QueueOut | null>(null);
  const listing = useListing<QueueOut>(keys.queues.all, () => data(api.GET("/v1/queues")), {
    refetchInterval: pollEvery(5000),
  });
  const n = (value: number) => formats.number(value, language);
  const pause = async (queue: QueueOut) => {
    const name = queue.name;
    if (!(await confirm({ title: t("askPause", { name }), body: t("pauseText"), action: t("pause") }))) return;
    const headers = ifMatch(queue.version);
    await act(
      () => data(api.POST("/v1/queues/{name}/pause", { params: { path: { name } }, headers })),
      t("paused", { name }),
    );
  };
  const resume = async ({ name, version }: QueueOut) => {
    const options = { params: { path: { name } }, headers: ifMatch(version) };
    await act(() => data(api.POST("/v1/queues/{name}/resume", options)), t("resumed", { name }));
  };
  const columns: Column<QueueOut>[] = [
    {
      key: "name",
      header: t("name"),
      width: "minmax(6rem, 1fr)",
      phone: "title",
      cell: (queue) => <b>{queue.name}</b>,
    },
    {
      key: "state",
      header: "",
      width: "6.5rem",
      cell: (queue) =>
        queue.paused_at ? <StateBadge state="PAUSED" /> : <StateBadge state="enabled" label={t("flows")} />,
    },
    {
      key: "waiting",
      header: t("waiting"),
      align: "end",
      width: "5rem",
      cell: (queue) => (queue.exact ? n(queue.waiting) : `${n(queue.waiting)}+`),
    },
    { key: "delayed", header: t("delayed"), align: "end", width: "5rem", cell: (queue) => n(queue.delayed) },
    { key: "running", header: t("running"), align: "end", width: "5rem", cell: (queue) => n(queue.running) },
    {
      key: "limit",
      header: t("limit"),
      align: "end",
      width: "4rem",
      cell: (queue) =>
        queue.max_running === null ? (
          <Text span size="sm" c="dimmed">
            {t("noLimit")}
          </Text>
        ) : (
          n(queue.max_running)
        ),
    },
    {
      key: "oldest",
      header: t("oldest"),
      width: "6.5rem",
      cell: (queue) =>
        queue.oldest_waiting_seconds === null ? "–" : formats.duration(queue.oldest_waiting_seconds * 1000, language),
    },
    {
      key: "actions",
      header: "",
      width: "12.5rem",
      align: "end",
      cell: (queue) => (
        <Group gap="xs" wrap="nowrap" justify="flex-end">
          <Button
            size="compact-sm"
            variant="default"
            leftSection={<IconGauge size={14} />}
            onClick={() => setLimiting(queue)}
          >
            {t("setLimit")}
          </Button>
          {queue.paused_at ? (
            <Button
              size="compact-sm"
              loading={busy}
              leftSection={<IconPlayerPlay size={14} />}
              onClick={() => void resume(queue)}
            >
              {t("resume")}
            </Button>
          ) : (
            <Button
              size="compact-sm"
              variant="default"
              loading={busy}
              leftSection={<IconPlayerPause size={14} />}
              onClick={() => void pause(queue)}
            >
              {t("pause")}
            </Button>
          )}
        </Group>
      ),
    },
  ];
  return (
    <Page title={t("title")} text={t("text")}>
      <CursorTable
        label={t("title")}
        listing={listing}
        columns={columns}
        rowKey={(queue) => queue.name}
        href={(queue) => `/operators/tasks?queue=${encodeURIComponent(queue.name)}`}
        empty={<Empty icon={IconStack2} title={t("none")} text={t("noneText")} />}
      />
      {limiting && <Limit key={limiting.name} queue={limiting} onClose={() => setLimiting(null)} />}
    </Page>
  );
}

function Limit({ queue, onClose }: { queue: QueueOut; onClose: () => void }) {
  const t = useText(queueTexts);
  const [most, setMost] = useState<number | null>(queue.max_running);
  const { name } = queue;
  const save = async () => {
    const options = { params: { path: { name } }, headers: ifMatch(queue.version), body: { max_running: most } };
    await data(api.PUT("/v1/queues/{name}/limit", options));
    tell(t("limited", { name }));
    onClose();
  };
  return (
    <FormDialog title={t("limitTitle", { name })} onSave={save} changes={keys.queues.all} onClose={onClose}>
      <Text size="sm">{t("limitText")}</Text>
      <NumberInput
        label={t("most")}
        min={1}
        max={1_000_000}
        allowDecimal={false}
        value={most ?? ""}
        onChange={(value) => setMost(value === "" ? null : Number(value))}
        data-autofocus
      />
    </FormDialog>
  );
}
