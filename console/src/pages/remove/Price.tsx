import { Anchor, Group, Text } from "@mantine/core";
import { useQuery } from "@tanstack/react-query";
import { Link } from "react-router";
import { keys } from "../../api";
import { ProblemAlert } from "../../components";
import { useText } from "../../i18n";
import type { Quality } from "./draft";
import { quote } from "./order";
import classes from "./Price.module.css";
import { removeTexts } from "./remove.texts";

export function usePrice(assetIds: string[], quality: Quality) {
  return useQuery({
    queryKey: keys.usage.quote(assetIds, quality),
    queryFn: () => quote(assetIds, quality),
    enabled: assetIds.length > 0,
  });
}

/** What it costs and what is left, wherever a click is charged. `refused` is for a server that has just said no. */
export function Price({
  price,
  refused = false,
  note,
}: {
  price: ReturnType<typeof usePrice>;
  refused?: boolean;
  note: string;
}) {
  const t = useText(removeTexts);
  const found = price.data;
  return (
    <>
      <Group justify="space-between" align="baseline">
        <Text size="sm" fw={600}>
          {t("price")}
        </Text>
        <Text className="figures" data-testid="price">
          {found ? (
            <>
              <b>{found.free ? t("free") : t("units", { n: found.units })}</b>{" "}
              <Text span size="sm" c="dimmed">
                {t("ofLeft", { n: found.left })}
              </Text>
            </>
          ) : (
            "…"
          )}
        </Text>
      </Group>
      <Text size="xs" c="dimmed">
        {note}
      </Text>
      {price.error !== null && <ProblemAlert error={price.error} onRetry={() => void price.refetch()} />}
      {((found !== undefined && !found.enough) || refused) && (
        <div className={classes.short} role="alert">
          {t("notEnough", { left: found?.left ?? 0, needed: found?.units ?? 0 })}{" "}
          <Anchor component={Link} to="/usage?tab=plans" underline="always" size="sm" inherit>
            {t("seePlans")}
          </Anchor>
        </div>
      )}
    </>
  );
}
