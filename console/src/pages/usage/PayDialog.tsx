import { Alert, Button, Center, Modal, Stack, Text } from "@mantine/core";
import { useQuery } from "@tanstack/react-query";
import { Link } from "react-router";
import { api, data, keys, type OrderOut } from "../../api";
import { commonTexts, IconBrandWechat, IconCircleCheck, ProblemAlert, Time } from "../../components";
import { formats, useLanguage, useText } from "../../i18n";
import { useDraft } from "../remove/draft";
import { usageTexts } from "./usage.texts";

/** The code to scan, until it is paid. */
export function PayDialog({ order, onClose }: { order: OrderOut; onClose: () => void }) {
  const t = useText(usageTexts);
  const common = useText(commonTexts);
  const language = useLanguage();
  const { files } = useDraft();
  const params = { path: { order_id: order.id } };
  const current = useQuery({
    queryKey: keys.usage.order(order.id),
    queryFn: () => data(api.GET("/v1/payments/{order_id}", { params })),
    initialData: order,
    refetchInterval: (query) => (query.state.data?.status === "PENDING" ? 2000 : false),
  });
  const check = useQuery({
    queryKey: keys.usage.orderCheck(order.id),
    queryFn: () => data(api.POST("/v1/payments/{order_id}/check", { params })),
    enabled: false,
  });
  const { status } = check.data?.status === "PAID" ? check.data : current.data;
  return (
    <Modal
      opened
      onClose={onClose}
      title={<Text fw={600}>{t("pay")}</Text>}
      closeButtonProps={{ "aria-label": common("close") }}
    >
      <Stack align="center" gap="sm">
        <Text fw={600} fz="xl" className="figures">
          {formats.money(order.amount_cents, order.currency, language)}
        </Text>
        <Text size="sm" c="dimmed">
          {order.description}
        </Text>
        {status === "PENDING" && (
          <>
            <Center p="sm" bg="white" style={{ borderRadius: 12, border: "1px solid var(--line)" }}>
              <img src={`/v1/payments/${order.id}/qr.png`} width={220} height={220} alt="WeChat Pay" />
            </Center>
            <Text size="sm" ta="center">
              <IconBrandWechat size={16} style={{ verticalAlign: -3 }} /> {t("payText")}
            </Text>
            <Text size="xs" c="dimmed">
              {t("payExpires")} <Time at={order.expires_at} />
            </Text>
            {check.error && <ProblemAlert error={check.error} />}
            <Button variant="default" loading={check.isFetching} onClick={() => void check.refetch()}>
              {t("check")}
            </Button>
            {check.data?.status === "PENDING" && !check.isFetching && (
              <Text size="sm" role="status">
                {t("notPaidYet")}
              </Text>
            )}
          </>
        )}
        {status === "PAID" && (
          <>
            <Alert color="green" icon={<IconCircleCheck />} w="100%" styles={{ message: { color: "var(--ink)" } }}>
              {t("paid")}
            </Alert>
            {files.length > 0 && (
              <Button component={Link} to="/remove">
                {t("backToOrder")}
              </Button>
            )}
          </>
        )}
        {status === "CLOSED" && <Text>{t("closed")}</Text>}
      </Stack>
    </Modal>
  );
}
