import { Button, Group, Progress, SimpleGrid, Text } from "@mantine/core";
import { useQuery } from "@tanstack/react-query";
import { Link, useParams } from "react-router";
import { api, data, keys, type RemovalItemOut } from "../../api";
import { IconDownload, IconWand, Loading, Page, Panel, ProblemAlert } from "../../components";
import { useText } from "../../i18n";
import { isOver } from "../../live/task";
import { asUploaded, countBatch } from "./batch";
import { download } from "./media";
import { RemovalCard } from "./Recent";
import { removalTexts } from "./remove.texts";

const MOST = 100;
const TEXTS = {
  removed: "batchRemoved",
  needYou: "batchNeedYou",
  withoutMark: "batchWithoutMark",
  failed: "batchFailed",
  canceled: "batchCanceled",
  underWay: "batchUnderWay",
} as const;
const STANDINGS = Object.keys(TEXTS) as (keyof typeof TEXTS)[];

/** What was ordered together: one batch, or several removals by their ids. */
async function read(name: string): Promise<RemovalItemOut[]> {
  if (name.startsWith("bat_")) {
    return (await data(api.GET("/v1/removals", { params: { query: { batch_id: name, limit: MOST } } }))).items;
  }
  const one = (id: string) => data(api.GET("/v1/removals/{task_id}", { params: { path: { task_id: id } } }));
  return Promise.all(name.split(",").slice(0, MOST).map(one));
}

export default function BatchPage() {
  const t = useText(removalTexts);
  const { batch = "" } = useParams();
  const removals = useQuery({
    queryKey: keys.removals.batch(batch),
    queryFn: () => read(batch),
    refetchInterval: (query) => (query.state.data?.some((each) => !isOver(each.status)) ? 1500 : false),
  });
  if (removals.error) return <ProblemAlert error={removals.error} onRetry={() => void removals.refetch()} />;
  if (!removals.data) return <Loading />;
  const items = asUploaded(removals.data);
  const counts = countBatch(items);
  const good = items.filter((each) => each.status === "SUCCEEDED");
  const together =
    items.reduce((sum, each) => sum + (isOver(each.status) ? 100 : each.progress), 0) / Math.max(items.length, 1);
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
          {good.length > 0 && (
            <Button leftSection={<IconDownload size={16} />} onClick={() => download(...good.map((each) => each.id))}>
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
          <RemovalCard key={removal.id} removal={removal} />
        ))}
      </SimpleGrid>
    </Page>
  );
}
