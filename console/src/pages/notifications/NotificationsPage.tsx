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
import { useText } from "../../i18n";
import classes from "./NotificationsPage.module.css";
import { markAllRead, markRead, placeOf, wordsOf } from "./notice";
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
  const [newest] = listing.items;
  return (
    <Page
      title={t("title")}
      text={t("text")}
      actions={
        <Button
          variant="default"
          leftSection={<IconCheck size={16} />}
          disabled={newest === undefined}
          onClick={() => void act(() => markAllRead(newest))}
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
            <Item key={each.id} notification={each} onRead={() => void act(() => markRead(each))} />
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

function Item({ notification, onRead }: { notification: NotificationOut; onRead: () => void }) {
  const t = useText(notificationTexts);
  const { title, body } = wordsOf(notification);
  const place = placeOf(notification);
  const isUnread = !notification.is_read;
  return (
    <article className={classes.item} data-unread={isUnread || undefined}>
      <div className={classes.text}>
        <Group gap="xs">
          {isUnread && <span className={classes.dot} role="img" aria-label={t("unread")} />}
          <Text fw={isUnread ? 600 : 400} size="sm">
            {title}
          </Text>
        </Group>
        <Text size="sm" c="dimmed">
          {body}
        </Text>
      </div>
      <Group gap="xs" wrap="nowrap">
        <Text size="xs" c="dimmed">
          <Time at={notification.created_at} />
        </Text>
        {place && (
          <Button
            component={Link}
            to={place}
            size="compact-sm"
            variant="light"
            onClick={() => {
              if (isUnread) onRead();
            }}
          >
            {t("open")}
          </Button>
        )}
        {isUnread && (
          <Button size="compact-sm" variant="subtle" onClick={onRead}>
            {t("markRead")}
          </Button>
        )}
      </Group>
    </article>
  );
}
