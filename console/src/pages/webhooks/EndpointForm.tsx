import { TagsInput, TextInput } from "@mantine/core";
import { useQuery } from "@tanstack/react-query";
import { useState } from "react";
import { api, data, type EndpointOut, ifMatch, keys } from "../../api";
import { FormDialog, SecretDialog } from "../../components";
import { useText } from "../../i18n";
import { webhookTexts } from "./webhooks.texts";

/** Make an endpoint, or change one. A new one shows its secret, once. */
export function EndpointForm({ endpoint, onClose }: { endpoint?: EndpointOut; onClose: () => void }) {
  const t = useText(webhookTexts);
  const [name, setName] = useState(endpoint?.name ?? "");
  const [url, setUrl] = useState(endpoint?.url ?? "");
  const [events, setEvents] = useState<string[]>(endpoint?.subscribed_events ?? ["task.*"]);
  const [secret, setSecret] = useState<string | null>(null);
  const types = useQuery({
    queryKey: keys.eventTypes,
    queryFn: async () => (await data(api.GET("/v1/event-types"))).items.map((type) => type.name),
    staleTime: 300_000,
  });
  const groups = [...new Set((types.data ?? []).map((type) => `${type.split(".")[0]}.*`))];
  const save = async () => {
    const body = { name, url, subscribed_events: events };
    if (endpoint) {
      const params = { path: { endpoint_id: endpoint.id }, header: ifMatch(endpoint.version) };
      await api.PATCH("/v1/webhooks/endpoints/{endpoint_id}", { params, body });
      onClose();
    } else {
      setSecret((await data(api.POST("/v1/webhooks/endpoints", { body }))).secret);
    }
  };
  const title = endpoint ? t("editTitle") : t("addTitle");
  if (secret !== null) return <SecretDialog title={title} label={t("secretTitle")} value={secret} onClose={onClose} />;
  return (
    <FormDialog
      title={title}
      onSave={save}
      changes={keys.webhooks.all}
      disabled={events.length === 0}
      onClose={onClose}
    >
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
    </FormDialog>
  );
}
