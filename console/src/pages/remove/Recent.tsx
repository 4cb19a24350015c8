import { Anchor, Group, Progress, SimpleGrid, Text, Title } from "@mantine/core";
import { useQuery } from "@tanstack/react-query";
import { Link } from "react-router";
import { api, data, keys, type RemovalItemOut } from "../../api";
import { Empty, IconWand, Time } from "../../components";
import { useText } from "../../i18n";
import { isOver } from "../../live/task";
import { previewUrl, resultPreviewUrl } from "./media";
import { RemovalBadge } from "./Outcome";
import classes from "./Recent.module.css";
import { removeTexts } from "./remove.texts";
import { Thumbnail } from "./Thumbnail";

const SHOWN = 8;

/** The last removals, with what became of them. */
export function Recent() {
  const t = useText(removeTexts);
  const recent = useQuery({
    queryKey: keys.removals.recent,
    queryFn: async () => (await data(api.GET("/v1/removals", { params: { query: { limit: SHOWN } } }))).items,
    refetchInterval: (query) => (query.state.data?.some((each) => !isOver(each.status)) ? 2000 : false),
  });
  if (!recent.data) return null;
  return (
    <section>
      <Group justify="space-between" mb="sm">
        <Title order={2}>{t("recent")}</Title>
        {recent.data.length > 0 && (
          <Anchor component={Link} to="/tasks" size="sm">
            {t("all")}
          </Anchor>
        )}
      </Group>
      {recent.data.length === 0 ? (
        <Empty icon={IconWand} title={t("noRecent")} text={t("noRecentText")} />
      ) : (
        <SimpleGrid cols={{ base: 1, xs: 2, md: 3, lg: 4 }} spacing="md">
          {recent.data.map((removal) => (
            <RemovalCard key={removal.id} removal={removal} />
          ))}
        </SimpleGrid>
      )}
    </section>
  );
}

export function RemovalCard({ removal, search = "" }: { removal: RemovalItemOut; search?: string }) {
  const picture = removal.status === "SUCCEEDED" ? resultPreviewUrl(removal.id) : previewUrl(removal.asset_id);
  return (
    <Link to={`/remove/${removal.id}${search}`} className={classes.card}>
      <div className={classes.picture}>
        <Thumbnail src={picture} kind={removal.media_type} size={160} />
      </div>
      <div className={classes.text}>
        <Text size="sm" fw={600} truncate>
          {removal.asset_name ?? removal.id}
        </Text>
        <Group justify="space-between" gap={4} mt={4}>
          <RemovalBadge removal={removal} />
          <Text size="xs" c="dimmed">
            <Time at={removal.created_at} />
          </Text>
        </Group>
        {!isOver(removal.status) && (
          <Progress value={removal.progress} size="xs" mt={8} aria-label={`${removal.progress} %`} />
        )}
      </div>
    </Link>
  );
}
