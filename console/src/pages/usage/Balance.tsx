import { Progress, RingProgress, SimpleGrid, Text } from "@mantine/core";
import { useQuery } from "@tanstack/react-query";
import { api, data, keys } from "../../api";
import { Loading, Panel, ProblemAlert, Time } from "../../components";
import { formats, useLanguage, useText } from "../../i18n";
import { usageTexts } from "./usage.texts";

/** What is left: units, and room for files. */
export function Balance() {
  const t = useText(usageTexts);
  const language = useLanguage();
  const balance = useQuery({ queryKey: keys.usage.balance, queryFn: () => data(api.GET("/v1/usage/balance")) });
  const storage = useQuery({ queryKey: keys.usage.storage, queryFn: () => data(api.GET("/v1/assets/usage")) });
  if (balance.error) return <ProblemAlert error={balance.error} onRetry={() => void balance.refetch()} />;
  if (!balance.data) return <Loading />;
  const { left, total, held, renews_at: renews } = balance.data;
  const share = total > 0 ? (left / total) * 100 : 0;
  return (
    <SimpleGrid cols={{ base: 1, sm: 2 }} mb="lg">
      <Panel>
        <div style={{ display: "flex", gap: "1.25rem", alignItems: "center" }}>
          <RingProgress
            size={108}
            thickness={11}
            roundCaps
            rootColor="var(--surface-2)"
            sections={[{ value: share, color: share > 15 ? "water.7" : "red.8" }]}
            label={
              <Text ta="center" fw={600} className="figures">
                {Math.round(share)}%
              </Text>
            }
          />
          <div>
            <Text fz="xl" fw={600} lh={1.1} className="figures" data-testid="units-left">
              {formats.number(left, language)}
            </Text>
            <Text size="sm" c="dimmed">
              {total > 0 ? t("left", { total }) : t("noQuota")}
            </Text>
            {held > 0 && (
              <Text size="sm" c="dimmed">
                {t("held", { n: held })}
              </Text>
            )}
            {renews && (
              <Text size="sm" c="dimmed">
                {t("renews")} <Time at={renews} />
              </Text>
            )}
          </div>
        </div>
      </Panel>
      <Panel title={t("storage")}>
        {storage.data && (
          <>
            <Text size="sm" c="dimmed" mb={8} className="figures">
              {storage.data.limit_bytes
                ? t("storageOf", {
                    used: formats.bytes(storage.data.stored_bytes),
                    limit: formats.bytes(storage.data.limit_bytes),
                  })
                : formats.bytes(storage.data.stored_bytes)}
            </Text>
            {storage.data.limit_bytes && (
              <Progress
                size="lg"
                value={(storage.data.stored_bytes / storage.data.limit_bytes) * 100}
                aria-label={t("storage")}
              />
            )}
          </>
        )}
      </Panel>
    </SimpleGrid>
  );
}
