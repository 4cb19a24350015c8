import { Button, Group, Modal, Stack, TagsInput, Text, TextInput } from "@mantine/core";
import { useQuery, useQueryClient } from "@tanstack/react-query";
import { type FormEvent, useState } from "react";
import { api, data, type EndpointOut, ifMatch } from "../../api";
import { commonTexts, ProblemAlert, Secret } from "../../components";
import { useText } from "../../i18n";
import { webhookTexts } from "./webhooks.texts";

/** Make an endpoint, or change one. A new one shows its secret, once. */
export function EndpointForm({ endpoint, onClose }: { endpoint?: EndpointOut; onClose: () => void }) {
  const t = useText(webhookTexts);
  const common = useText(commonTexts);
  const queries = useQueryClient();
  const [name, setName] = useState(endpoint?.name ?? "");
  const [url, setUrl] = useState(endpoint?.url ?? "");
  const [events, setEvents] = useState<string[]>(endpoint?.subscribed_events ?? ["task.*"]);
  const [secret, setSecret] = useState<string | null>(null);
  const [error, setError] = useState<unknown>(null);
  const [busy, setBusy] = useState(false);
  const types = useQuery({
    queryKey: ["event-types"],
    queryFn: async () => (await data(api.GET("/v1/event-types"))).items.map((type) => type.name),
    staleTime: 300_000,
  });
  const groups = [...new Set((types.data ?? []).map((type) => `${type.split(".")[0]}.*`))];
  const submit = async (event: FormEvent) => {
    event.preventDefault();
    setBusy(true);
    setError(null);
    const body = { name, url, subscribed_events: events };
    try {
      if (endpoint) {
        const params = { path: { endpoint_id: endpoint.id }, header: ifMatch(endpoint.version) };
        await api.PATCH("/v1/webhooks/endpoints/{endpoint_id}", { params, body });
        onClose();
      } else {
        setSecret((await data(api.POST("/v1/webhooks/endpoints", { body }))).secret);
      }
      await queries.invalidateQueries({ queryKey: ["webhooks"] });
    } catch (refusal) {
      setError(refusal);
    } finally {
      setBusy(false);
    }
  };
  return (
    <Modal
      opened
      onClose={onClose}
      title={<Text fw={650}>{endpoint ? t("editTitle") : t("addTitle")}</Text>}
      closeButtonProps={{ "aria-label": common("close") }}
    >
      {secret !== null ? (
        <Stack>
          <Secret title={t("secretTitle")} value={secret} />
          <Button onClick={onClose}>{common("close")}</Button>
        </Stack>
      ) : (
        <form onSubmit={(event) => void submit(event)}>
          <Stack>
            {error !== null && <ProblemAlert error={error} />}
            <TextInput
              label={t("name")}
              value={name}
              onChange={(event) => setName(event.currentTarget.value)}
              required
              maxLength={64}
              data-autofocus
            />
            <TextInput
              label={t("url")}
              description={t("urlHint")}
              type="url"
              value={url}
              onChange={(event) => setUrl(event.currentTarget.value)}
              required
            />
            <TagsInput
              label={t("events")}
              description={t("eventsHint")}
              value={events}
              onChange={setEvents}
              data={[...groups, ...(types.data ?? [])]}
              comboboxProps={{ shadow: "md" }}
            />
            <Group justify="flex-end">
              <Button variant="default" onClick={onClose}>
                {common("cancel")}
              </Button>
              <Button type="submit" loading={busy} disabled={events.length === 0}>
                {common("save")}
              </Button>
            </Group>
          </Stack>
        </form>
      )}
    </Modal>
  );
}
