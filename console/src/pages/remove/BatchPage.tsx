import { Button, Group, Progress, SimpleGrid, Text } from "@mantine/core";
import { Link, useParams } from "react-router";
import { api, keys } from "../../api";
import {
  IconDownload,
  IconPlayerStop,
  IconWand,
  Loading,
  Page,
  Panel,
  ProblemAlert,
  useAct,
  useConfirm,
} from "../../components";
import { useText } from "../../i18n";
import { useReadWith } from "../../live/notifications";
import { isOver } from "../../live/task";
import { NotFound } from "../../shell/NotFound";
import { countBatch } from "./batch";
import { download } from "./media";
import { RemovalCard } from "./Recent";
import { removalTexts } from "./remove.texts";
import { useBatch } from "./useBatch";

const TEXTS = {
  removed: "batchRemoved",
  needYou: "batchNeedYou",
  withoutMark: "batchWithoutMark",
  failed: "batchFailed",
  canceled: "batchCanceled",
  underWay: "batchUnderWay",
} as const;
const STANDINGS = Object.keys(TEXTS) as (keyof typeof TEXTS)[];

export default function BatchPage() {
  const t = useText(removalTexts);
  const { batch = "" } = useParams();
  const confirm = useConfirm();
  const { busy, act } = useAct(keys.removals.all);
  const { removals, items, asking } = useBatch(batch);
  const ids = items.map((each) => each.id);
  useReadWith(ids, batch, items.length > 0 && items.every((each) => isOver(each.status)));
  if (removals.error) return <ProblemAlert error={removals.error} onRetry={() => void removals.refetch()} />;
  if (!removals.data) return <Loading />;
  if (items.length === 0) return <NotFound />;
  const counts = countBatch(items);
  const good = items.filter((each) => each.status === "SUCCEEDED");
  const together =
    items.reduce((sum, each) => sum + (isOver(each.status) ? 100 : each.progress), 0) / Math.max(items.length, 1);
  const open = items.filter((each) => !isOver(each.status));
  const stopAll = async () => {
    const title = t("stopAllTitle", { n: open.length });
    if (!(await confirm({ title, body: t("cancelText"), action: t("stopAll"), danger: true }))) return;
    await act(async () => {
      for (const { id } of open) await api.POST("/v1/tasks/{task_id}/cancel", { params: { path: { task_id: id } } });
    });
  };
  return (
    <Page
      title={t("batch", { n: items.length })}
      text={STANDINGS.filter((each) => counts[each] > 0)
        .map((each) => t(TEXTS[each], { n: counts[each] }))
        .join(" · ")}
      actions={
        <>
          <Button component={Link} to="/remove" variant="default" leftSection={<IconWand size={16} />}>
            {t("another")}
          </Button>
          {open.length > 0 && (
            <Button
              variant="default"
              leftSection={<IconPlayerStop size={16} />}
              loading={busy}
              onClick={() => void stopAll()}
            >
              {t("stopAll")}
            </Button>
          )}
          {asking[0] && (
            <Button component={Link} to={`/remove/${asking[0].id}?batch=${encodeURIComponent(batch)}`}>
              {t("answerNext", { n: asking.length })}
            </Button>
          )}
          {good.length > 0 && (
            <Button
              variant={asking.length > 0 ? "default" : "filled"}
              leftSection={<IconDownload size={16} />}
              onClick={() => download(...good.map((each) => each.id))}
            >
              {t("downloadAll", { n: good.length })}
            </Button>
          )}
        </>
      }
    >
      {counts.underWay > 0 && (
        <Panel>
          <Group justify="space-between" mb={8}>
            <Text fw={600}>{t("inAll")}</Text>
            <Text size="sm" c="dimmed" className="figures">
              {Math.round(together)} %
            </Text>
          </Group>
          <Progress value={together} size="lg" animated aria-label={t("progress")} />
        </Panel>
      )}
      {counts.underWay === 0 && good.length === 0 && <Text c="dimmed">{t("nothingToDownload")}</Text>}
      <SimpleGrid cols={{ base: 1, xs: 2, md: 3, lg: 4 }} spacing="md">
        {items.map((removal) => (
          <RemovalCard key={removal.id} removal={removal} search={`?batch=${encodeURIComponent(batch)}`} />
        ))}
      </SimpleGrid>
    </Page>
  );
}
