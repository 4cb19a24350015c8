import { Button, Stack, Text } from "@mantine/core";
import type { RemovalOut } from "../../api";
import { Panel } from "../../components";
import { useText } from "../../i18n";
import { heldBackUrl } from "./media";
import { usePrice } from "./Price";
import type { Again } from "./RemovalPage";
import { Halves } from "./ResultView";
import { removalTexts, removeTexts } from "./remove.texts";

/** A result that is not good enough to be charged by itself: who takes it as it is sees it, and its price, before. */
export function HeldBack({ removal, again }: { removal: RemovalOut; again: Again }) {
  const t = useText(removalTexts);
  const words = useText(removeTexts);
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
        <Text size="xs" c="dimmed">
          {t("heldBackText")}
        </Text>
        <Button
          variant="default"
          loading={again.busy}
          disabled={!price.data?.enough}
          onClick={() => again.run({ acceptPoor: true, once: `take-${removal.id}` })}
        >
          {t("takeAnyway")}
          {price.data && ` · ${words("units", { n: price.data.units })}`}
        </Button>
      </Stack>
    </Panel>
  );
}
