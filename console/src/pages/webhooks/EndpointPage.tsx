import { Button, Group, Menu, Modal, Text } from "@mantine/core";
import { useQuery } from "@tanstack/react-query";
import { useState } from "react";
import { useNavigate, useParams } from "react-router";
import { api, data, type EndpointOut, ifMatch, keys } from "../../api";
import {
  commonTexts,
  Fact,
  Facts,
  IconDotsVertical,
  IconEdit,
  IconKey,
  IconPlayerPause,
  IconPlayerPlay,
  IconSend,
  IconTrash,
  Id,
  Loading,
  Page,
  Panel,
  ProblemAlert,
  Secret,
  StateBadge,
  Time,
  useAct,
  useConfirm,
} from "../../components";
import { formats, useLanguage, useText } from "../../i18n";
import { Deliveries } from "./Deliveries";
import { EndpointForm } from "./EndpointForm";
import { healthOf } from "./health";
import { webhookTexts } from "./webhooks.texts";

export default function EndpointPage() {
  const { endpointId = "" } = useParams();
  const t = useText(webhookTexts);
  const language = useLanguage();
  const path = { endpoint_id: endpointId };
  const endpoint = useQuery({
    queryKey: keys.webhooks.endpoint(endpointId),
    queryFn: () => data(api.GET("/v1/webhooks/endpoints/{endpoint_id}", { params: { path } })),
  });
  const statistics = useQuery({
    queryKey: keys.webhooks.statistics(endpointId),
    queryFn: () => data(api.GET("/v1/webhooks/endpoints/{endpoint_id}/statistics", { params: { path } })),
    refetchInterval: 5000,
  });
  if (endpoint.error) {
    return (
      <Page title={t("endpoint")}>
        <ProblemAlert error={endpoint.error} onRetry={() => void endpoint.refetch()} />
      </Page>
    );
  }
  if (!endpoint.data) return <Loading />;
  const one = endpoint.data;
  const figures = statistics.data;
  const reasons: Record<string, string> = { by_hand: t("by_hand"), failing: t("failingReason"), gone: t("gone") };
  return (
    <Page
      title={one.name}
      text={
        <Group gap="sm">
          <StateBadge state={healthOf(one)} />
          {one.status_reason && <span>{reasons[one.status_reason] ?? one.status_reason}</span>}
          <Id id={one.id} />
        </Group>
      }
      actions={<Actions endpoint={one} />}
    >
      <Panel>
        <Facts>
          <Fact name={t("url")}>{one.url}</Fact>
          <Fact name={t("events")}>{one.subscribed_events.join(", ")}</Fact>
          <Fact name={t("secret")}>
            <code>{one.secret_hint ?? "–"}</code>
          </Fact>
          <Fact name={t("successRate")}>
            {figures?.success_rate == null ? "–" : formats.percent(figures.success_rate, language)}
          </Fact>
          <Fact name={t("attempts")}>{figures?.attempts ?? "–"}</Fact>
          <Fact name={t("latency")}>
            {figures?.latency_p95_ms == null ? "–" : formats.duration(figures.latency_p95_ms, language)}
          </Fact>
          <Fact name={t("waiting")}>{figures?.waiting ?? "–"}</Fact>
          {one.failing_since && (
            <Fact name={t("failing")}>
              <Time at={one.failing_since} />
            </Fact>
          )}
        </Facts>
      </Panel>
      <Deliveries endpoint={one} />
    </Page>
  );
}

function Actions({ endpoint }: { endpoint: EndpointOut }) {
  const t = useText(webhookTexts);
  const common = useText(commonTexts);
  const confirm = useConfirm();
  const navigate = useNavigate();
  const { act } = useAct(keys.webhooks.all);
  const [editing, setEditing] = useState(false);
  const [secret, setSecret] = useState<string | null>(null);
  const path = { endpoint_id: endpoint.id };
  const header = ifMatch(endpoint.version);
  const remove = async () => {
    if (!(await confirm({ title: t("deleteTitle"), body: t("deleteText"), action: common("delete"), danger: true })))
      return;
    await act(async () => {
      await api.DELETE("/v1/webhooks/endpoints/{endpoint_id}", { params: { path, header } });
      void navigate("/webhooks");
    });
  };
  const rotate = async () => {
    if (!(await confirm({ title: t("rotateTitle"), body: t("rotateText"), action: t("rotate") }))) return;
    await act(async () => {
      const made = await data(
        api.POST("/v1/webhooks/endpoints/{endpoint_id}/rotate-secret", { params: { path, header }, body: {} }),
      );
      setSecret(made.secret);
    });
  };
  const paused = endpoint.status !== "ACTIVE";
  return (
    <>
      <Button
        leftSection={<IconSend size={16} />}
        onClick={() =>
          void act(() => api.POST("/v1/webhooks/endpoints/{endpoint_id}/test", { params: { path } }), t("testSent"))
        }
      >
        {t("test")}
      </Button>
      <Button
        variant="default"
        leftSection={paused ? <IconPlayerPlay size={16} /> : <IconPlayerPause size={16} />}
        onClick={() =>
          void act(() =>
            paused
              ? api.POST("/v1/webhooks/endpoints/{endpoint_id}/resume", { params: { path, header } })
              : api.POST("/v1/webhooks/endpoints/{endpoint_id}/pause", { params: { path, header } }),
          )
        }
      >
        {paused ? t("resume") : t("pause")}
      </Button>
      <Menu position="bottom-end">
        <Menu.Target>
          <Button variant="default" px={8} aria-label={common("actions")}>
            <IconDotsVertical />
          </Button>
        </Menu.Target>
        <Menu.Dropdown>
          <Menu.Item leftSection={<IconEdit size={16} />} onClick={() => setEditing(true)}>
            {common("edit")}
          </Menu.Item>
          <Menu.Item leftSection={<IconKey size={16} />} onClick={() => void rotate()}>
            {t("rotate")}
          </Menu.Item>
          <Menu.Item color="red.8" leftSection={<IconTrash size={16} />} onClick={() => void remove()}>
            {common("delete")}
          </Menu.Item>
        </Menu.Dropdown>
      </Menu>
      {editing && <EndpointForm endpoint={endpoint} onClose={() => setEditing(false)} />}
      <Modal
        opened={secret !== null}
        onClose={() => setSecret(null)}
        title={<Text fw={600}>{t("rotate")}</Text>}
        closeButtonProps={{ "aria-label": common("close") }}
      >
        {secret !== null && <Secret title={t("secretTitle")} value={secret} />}
      </Modal>
    </>
  );
}
