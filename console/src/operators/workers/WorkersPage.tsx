import { Group, Progress, SimpleGrid, Stack, Text } from "@mantine/core";
import { useQuery } from "@tanstack/react-query";
import { Link } from "react-router";
import { api, data, keys, type WorkerOut } from "../../api";
import { Elapsed, Empty, Fact, Facts, IconServer, Id, Loaded, Page, Panel, StateBadge, Time } from "../../components";
import { formats, useLanguage, useText } from "../../i18n";
import { pollEvery } from "../live/useChanges";
import classes from "./Workers.module.css";
import { workerTexts } from "./workers.texts";

/** Workers, each with what it runs now. */
export default function WorkersPage() {
  const t = useText(workerTexts);
  const query = useQuery({
    queryKey: keys.workers.all,
    queryFn: () => data(api.GET("/v1/workers")),
    refetchInterval: pollEvery(3000),
  });
  return (
    <Page title={t("title")} text={t("text")}>
      <Loaded query={query}>
        {({ items }) =>
          items.length === 0 ? (
            <Panel>
              <Empty icon={IconServer} title={t("none")} text={t("noneText")} />
            </Panel>
          ) : (
            <SimpleGrid cols={{ base: 1, lg: 2 }}>
              {items.map((worker) => (
                <Worker key={worker.id} worker={worker} />
              ))}
            </SimpleGrid>
          )
        }
      </Loaded>
    </Page>
  );
}

function Worker({ worker }: { worker: WorkerOut }) {
  const t = useText(workerTexts);
  const language = useLanguage();
  const labels = Object.entries(worker.labels).map(([name, value]) => `${name}=${value}`);
  const state = !worker.alive ? "silent" : worker.stopping_at ? "stopping" : "alive";
  return (
    <Panel title={`${worker.host}:${worker.pid}`} text={<Id id={worker.id} />} actions={<StateBadge state={state} />}>
      <Stack gap="sm">
        <div>
          <Text size="sm" mb={4}>
            {t("busy", { n: worker.running, of: worker.concurrency })}
          </Text>
          <Progress
            value={(100 * worker.running) / worker.concurrency}
            aria-label={t("busy", { n: worker.running, of: worker.concurrency })}
          />
        </div>
        <Facts>
          <Fact name={t("heard")}>
            <Time at={worker.heartbeat_at} />
          </Fact>
          <Fact name={t("since")}>
            <Time at={worker.started_at} />
          </Fact>
          <Fact name={t("finished")}>{formats.number(worker.finished, language)}</Fact>
          <Fact name={t("queues")}>{worker.queues?.join(", ") ?? t("allQueues")}</Fact>
          {labels.length > 0 && <Fact name={t("labels")}>{labels.join(", ")}</Fact>}
        </Facts>
        <details>
          <summary className={classes.summary}>
            {t("types")} ({worker.types.length})
          </summary>
          <Text size="sm" c="dimmed" mt={4}>
            {worker.types.join(", ")}
          </Text>
        </details>
        <div>
          <Text fw={600} size="sm" mb={4}>
            {t("runs")}
          </Text>
          {worker.holds.length === 0 ? (
            <Text size="sm" c="dimmed">
              {t("idle")}
            </Text>
          ) : (
            <Stack gap={6}>
              {worker.holds.map((held) => (
                <Group key={held.task_id} gap="sm" wrap="nowrap" className={classes.held}>
                  <Link to={`/operators/tasks/${held.task_id}`} className={classes.name}>
                    {held.type}
                  </Link>
                  <Text size="xs" c="dimmed" span>
                    {t("attempt", { n: held.attempt })}
                  </Text>
                  <Text size="sm" span ml="auto">
                    <Elapsed from={held.since} />
                  </Text>
                </Group>
              ))}
              {worker.running > worker.holds.length && (
                <Text size="sm" c="dimmed">
                  {t("more", { n: worker.running - worker.holds.length })}
                </Text>
              )}
            </Stack>
          )}
        </div>
      </Stack>
    </Panel>
  );
}
