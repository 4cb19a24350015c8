import { Button, Stack, Text } from "@mantine/core";
import { useQuery } from "@tanstack/react-query";
import { Link } from "react-router";
import { api, data, keys, type RemovalItemOut, type RemovalOut } from "../../api";
import { Panel } from "../../components";
import { useText } from "../../i18n";
import { heldBackUrl } from "./media";
import { Price, usePrice } from "./Price";
import type { Again } from "./RemovalPage";
import { Halves } from "./ResultView";
import { removalTexts } from "./remove.texts";

/** A result that is not good enough to be charged by itself: who takes it as it is sees it, and its price, before. */
export function HeldBack({ removal, again }: { removal: RemovalOut; again: Again }) {
  const t = useText(removalTexts);
  const price = usePrice([removal.asset_id], removal.quality);
  const taken = useTaken(removal);
  if (taken.data) return <Taken by={taken.data} />;
  return (
    <Panel title={t("heldBack")}>
      <Stack gap="sm" data-testid="held-back">
        {removal.held_back ? (
          <Halves url={heldBackUrl(removal.id)} />
        ) : (
          <Text size="sm" c="dimmed">
            {t("heldBackGone")}
          </Text>
        )}
        <Price price={price} note={t("heldBackText")} />
        <Button
          variant="default"
          loading={again.busy}
          disabled={!price.data?.enough || taken.isPending}
          onClick={() => again.run({ acceptPoor: true, once: `take-${removal.id}` })}
        >
          {t("takeAnyway")}
        </Button>
      </Stack>
    </Panel>
  );
}

/** The order that accepted this result, so that it is not paid for twice. */
function useTaken(removal: RemovalOut) {
  return useQuery({
    queryKey: keys.removals.taken(removal.id),
    queryFn: async () => {
      const query = { asset_id: removal.asset_id, limit: 100 };
      const { items } = await data(api.GET("/v1/removals", { params: { query } }));
      const later = items.filter((each) => each.accept_poor && each.created_at > removal.created_at);
      return later.find((each) => each.status !== "FAILED" && each.status !== "CANCELED") ?? null;
    },
  });
}

function Taken({ by }: { by: RemovalItemOut }) {
  const t = useText(removalTexts);
  return (
    <Panel title={t("heldBack")}>
      <Stack gap="sm" data-testid="held-back" align="flex-start">
        <Text size="sm">{t("takenAlready")}</Text>
        <Button component={Link} to={`/remove/${by.id}`} variant="default">
          {t("openTaken")}
        </Button>
      </Stack>
    </Panel>
  );
}
