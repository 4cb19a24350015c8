import { Button, Stack, Text } from "@mantine/core";
import type { RemovalOut } from "../../api";
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
          disabled={!price.data?.enough}
          onClick={() => again.run({ acceptPoor: true })}
        >
          {t("takeAnyway")}
        </Button>
      </Stack>
    </Panel>
  );
}
