import { Button, Drawer, Group, Stack, Text, Title } from "@mantine/core";
import { useQuery } from "@tanstack/react-query";
import { api, type DeliveryItemOut, data, type EndpointOut, keys, useListing } from "../../api";
import {
  type Column,
  CursorTable,
  commonTexts,
  Empty,
  Fact,
  Facts,
  IconRefresh,
  IconSend,
  Id,
  JsonView,
  Loading,
  ProblemAlert,
  StateBadge,
  Time,
  useAct,
  useFilters,
} from "../../components";
import { formats, useLanguage, useText } from "../../i18n";
import classes from "./Deliveries.module.css";
import { webhookTexts } from "./webhooks.texts";

const FIRST = { delivery: "" };
const DAY_MS = 86_400_000;

/** What was sent to an endpoint, what it answered, and sending it again. */
export function Deliveries({ endpoint }: { endpoint: EndpointOut }) {
  const t = useText(webhookTexts);
  const language = useLanguage();
  const { act } = useAct(keys.webhooks.all);
  const filters = useFilters(FIRST);
  const listing = useListing<DeliveryItemOut>(
    keys.webhooks.deliveries(endpoint.id),
    (cursor) =>
      data(
        api.GET("/v1/webhooks/deliveries", {
          params: { query: { endpoint_id: endpoint.id, limit: 50, cursor } },
        }),
      ),
    { refetchInterval: 2000 },
  );
  const columns: Column<DeliveryItemOut>[] = [
    {
      key: "event",
      header: t("event"),
      width: "minmax(9rem, 1.4fr)",
      phone: "title",
      cell: (delivery) => <code>{delivery.event_type}</code>,
    },
    { key: "status", header: t("state"), width: "8rem", cell: (delivery) => <StateBadge state={delivery.status} /> },
    {
      key: "answer",
      header: t("answer"),
      width: "minmax(7rem, 1fr)",
      cell: (delivery) => (
        <Text size="sm" c="dimmed" truncate>
          {delivery.response_status ?? delivery.error ?? "–"}
        </Text>
      ),
    },
    {
      key: "attempt",
      header: t("attempt"),
      width: "5rem",
      align: "end",
      phone: "hidden",
      cell: (delivery) => delivery.attempt,
    },
    {
      key: "took",
      header: t("took"),
      width: "6rem",
      align: "end",
      phone: "hidden",
      cell: (delivery) => (delivery.duration_ms === null ? "–" : formats.duration(delivery.duration_ms, language)),
    },
    { key: "at", header: t("when"), width: "9rem", cell: (delivery) => <Time at={delivery.created_at} /> },
  ];
  const resendFailed = () => {
    const since = new Date(Date.now() - DAY_MS).toISOString();
    const params = { path: { endpoint_id: endpoint.id } };
    return act(
      () => data(api.POST("/v1/webhooks/endpoints/{endpoint_id}/resend", { params, body: { since } })),
      ({ resent }) => t("resentMany", { n: resent }),
    );
  };
  return (
    <section>
      <Group justify="space-between" mb="sm">
        <Title order={2}>{t("deliveries")}</Title>
        <Button size="xs" variant="default" leftSection={<IconRefresh size={14} />} onClick={() => void resendFailed()}>
          {t("resendFailed")}
        </Button>
      </Group>
      <CursorTable
        label={t("deliveries")}
        listing={listing}
        columns={columns}
        rowKey={(delivery) => delivery.id}
        onOpen={(delivery) => filters.set({ delivery: delivery.id })}
        empty={<Empty icon={IconSend} title={t("noDeliveries")} text={t("noDeliveriesText")} />}
      />
      {filters.values.delivery !== "" && (
        <Delivery id={filters.values.delivery} onClose={() => filters.set({ delivery: "" })} />
      )}
    </section>
  );
}

function Delivery({ id, onClose }: { id: string; onClose: () => void }) {
  const t = useText(webhookTexts);
  const common = useText(commonTexts);
  const { act } = useAct(keys.webhooks.all);
  const params = { path: { delivery_id: id } };
  const delivery = useQuery({
    queryKey: keys.webhooks.delivery(id),
    queryFn: () => data(api.GET("/v1/webhooks/deliveries/{delivery_id}", { params })),
  });
  const resend = async () => {
    await act(async () => {
      await api.POST("/v1/webhooks/deliveries/{delivery_id}/resend", { params });
      onClose();
    }, t("resent"));
  };
  const one = delivery.data;
  return (
    <Drawer
      opened
      onClose={onClose}
      position="right"
      size="xl"
      title={<Text fw={600}>{t("delivery")}</Text>}
      closeButtonProps={{ "aria-label": common("close") }}
    >
      {delivery.error ? (
        <ProblemAlert error={delivery.error} />
      ) : !one ? (
        <Loading />
      ) : (
        <Stack>
          <Group justify="space-between">
            <Group gap="sm">
              <StateBadge state={one.status} />
              <Id id={one.id} />
            </Group>
            <Button size="xs" variant="default" leftSection={<IconRefresh size={14} />} onClick={() => void resend()}>
              {t("resend")}
            </Button>
          </Group>
          <Facts>
            <Fact name={t("event")}>
              <code>{one.event_type}</code>
            </Fact>
            <Fact name={t("attempt")}>{one.attempt}</Fact>
            <Fact name={t("answer")}>{one.response_status ?? t("noResponse")}</Fact>
            <Fact name={t("when")}>
              <Time at={one.created_at} />
            </Fact>
            {one.next_retry_at && (
              <Fact name={t("nextRetry")}>
                <Time at={one.next_retry_at} />
              </Fact>
            )}
          </Facts>
          {one.error && <Text className={classes.error}>{one.error}</Text>}
          <JsonView label={t("requestHeaders")} value={one.request_headers ?? {}} />
          <JsonView label={t("requestBody")} value={one.request_body} />
          <div>
            <Text size="sm" fw={600} mb={4}>
              {t("responseBody")}
            </Text>
            {one.response_body ? (
              <pre className={classes.body}>{one.response_body}</pre>
            ) : (
              <Text size="sm" c="dimmed">
                {t("noBody")}
              </Text>
            )}
          </div>
        </Stack>
      )}
    </Drawer>
  );
}
