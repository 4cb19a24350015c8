import { Button, Group, Stack, Switch, Text } from "@mantine/core";
import { Link } from "react-router";
import { api, data, keys, type NotificationOut, useListing } from "../../api";
import {
  commonTexts,
  Empty,
  IconBell,
  IconCheck,
  Loading,
  Page,
  ProblemAlert,
  Time,
  useAct,
  useFilters,
} from "../../components";
import { text, useText, wordFor } from "../../i18n";
import { ASKS } from "../remove/batch";
import { removalTexts } from "../remove/remove.texts";
import { MEDIA } from "../tasks/failure";
import classes from "./NotificationsPage.module.css";
import { notificationTexts } from "./notifications.texts";

const FIRST = { unread: "" };

export default function NotificationsPage() {
  const t = useText(notificationTexts);
  const common = useText(commonTexts);
  const { act } = useAct(keys.notifications.all);
  const filters = useFilters(FIRST);
  const unread = filters.values.unread === "yes";
  const listing = useListing<NotificationOut>(keys.notifications.list(unread), (cursor) =>
    data(
      api.GET("/v1/notifications", {
        params: { query: { limit: 50, unread: unread || undefined, cursor } },
      }),
    ),
  );
  const newest = listing.items[0]?.id;
  return (
    <Page
      title={t("title")}
      text={t("text")}
      actions={
        <Button
          variant="default"
          leftSection={<IconCheck size={16} />}
          disabled={newest === undefined}
          onClick={() => void act(() => api.POST("/v1/notifications/read-all", { body: { up_to: newest ?? null } }))}
        >
          {t("readAll")}
        </Button>
      }
    >
      <Switch
        label={t("unreadOnly")}
        checked={unread}
        onChange={(event) => filters.set({ unread: event.currentTarget.checked ? "yes" : "" })}
      />
      {listing.error ? (
        <ProblemAlert error={listing.error} onRetry={listing.reload} />
      ) : listing.isLoading ? (
        <Loading />
      ) : listing.items.length === 0 ? (
        <Empty icon={IconBell} title={t("none")} text={t("noneText")} />
      ) : (
        <Stack gap="xs">
          {listing.items.map((each) => (
            <article key={each.id} className={classes.item} data-unread={!each.is_read || undefined}>
              <div className={classes.text}>
                <Group gap="xs">
                  {!each.is_read && <span className={classes.dot} role="img" aria-label={t("unread")} />}
                  <Text fw={each.is_read ? 400 : 600} size="sm">
                    {words(each).title}
                  </Text>
                </Group>
                <Text size="sm" c="dimmed">
                  {words(each).body}
                </Text>
              </div>
              <Group gap="xs" wrap="nowrap">
                <Text size="xs" c="dimmed">
                  <Time at={each.created_at} />
                </Text>
                {taskOf(each) && (
                  <Button
                    component={Link}
                    to={placeOf(each)}
                    size="compact-sm"
                    variant="light"
                    onClick={() => each.is_read || void act(() => markRead(each))}
                  >
                    {t("open")}
                  </Button>
                )}
                {!each.is_read && (
                  <Button size="compact-sm" variant="subtle" onClick={() => void act(() => markRead(each))}>
                    {t("markRead")}
                  </Button>
                )}
              </Group>
            </article>
          ))}
          {listing.hasMore && (
            <Button variant="subtle" loading={listing.isLoadingMore} onClick={listing.loadMore}>
              {common("more")}
            </Button>
          )}
        </Stack>
      )}
    </Page>
  );
}

function markRead({ id }: NotificationOut): Promise<unknown> {
  const path = { notification_id: String(id) };
  return api.POST("/v1/notifications/{notification_id}/read", { params: { path } });
}

interface AboutTask {
  readonly type?: string;
  readonly title?: string;
  readonly error_code?: string;
}

/** What the server wrote; of a removal in the words of this console, which also speak the language of now. */
function words(each: NotificationOut): { title: string; body: string } {
  const t = text(notificationTexts);
  const { type = "", title, error_code = "" } = (each.payload ?? {}) as AboutTask;
  const called = title ? t("called", { title }) : "";
  const kind = wordFor(notificationTexts, `kind-${type}`);
  if (each.type === "QUOTA_REACHED") {
    const {
      percent = 0,
      left = 0,
      total = 0,
    } = (each.payload ?? {}) as Partial<Record<"percent" | "left" | "total", number>>;
    return { title: t("quota", { percent }), body: t("quotaText", { left, total }) };
  }
  if (!MEDIA.includes(type)) return each;
  if (each.type === "TASK_SUCCEEDED") return { title: t("ready", { kind }) + called, body: t("readyText") };
  const why = wordFor(removalTexts, error_code);
  if (each.type !== "TASK_FAILED" || why === error_code) return each;
  return {
    title: t(ASKS.includes(error_code) ? "asks" : "failed", { kind }) + called,
    body: `${why} ${text(removalTexts)("nothingCharged")}`,
  };
}

function placeOf(each: NotificationOut): string {
  const { type = "" } = (each.payload ?? {}) as AboutTask;
  return `/${MEDIA.includes(type) ? "remove" : "tasks"}/${taskOf(each)}`;
}

function taskOf(notification: NotificationOut): string | null {
  const id = (notification.payload as { task_id?: unknown } | null)?.task_id;
  return typeof id === "string" ? id : null;
}
