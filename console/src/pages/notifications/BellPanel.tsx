import { Anchor, Button, Group, Text, Title, UnstyledButton } from "@mantine/core";
import { useQuery } from "@tanstack/react-query";
import { Link } from "react-router";
import { api, data, keys, type NotificationOut } from "../../api";
import { Loaded, Time, useAct } from "../../components";
import { useText } from "../../i18n";
import classes from "./BellPanel.module.css";
import { markAllRead, markRead, placeOf, wordsOf } from "./notice";
import { notificationTexts } from "./notifications.texts";

const SHOWN = 8;

/** The newest notifications, below the bell. */
export default function BellPanel({ onClose }: { onClose: () => void }) {
  const t = useText(notificationTexts);
  const { busy, act } = useAct(keys.notifications.all);
  const query = useQuery({
    queryKey: keys.notifications.newest,
    queryFn: async () => (await data(api.GET("/v1/notifications", { params: { query: { limit: SHOWN } } }))).items,
  });
  return (
    <section className={classes.panel} aria-label={t("title")}>
      <Group justify="space-between" className={classes.head}>
        <Title order={2} fz="sm">
          {t("title")}
        </Title>
        {query.data?.some((each) => !each.is_read) && (
          <Button
            size="compact-sm"
            variant="subtle"
            loading={busy}
            onClick={() => void act(() => markAllRead(query.data?.[0]))}
          >
            {t("readAll")}
          </Button>
        )}
      </Group>
      <div className={classes.items}>
        <Loaded query={query} lines={3}>
          {(found) =>
            found.length === 0 ? (
              <Text size="sm" c="dimmed" className={classes.none}>
                {t("none")}
              </Text>
            ) : (
              found.map((each) => (
                <Item
                  key={each.id}
                  notification={each}
                  onOpen={() => {
                    if (!each.is_read) void act(() => markRead(each));
                    onClose();
                  }}
                />
              ))
            )
          }
        </Loaded>
      </div>
      <Anchor component={Link} to="/notifications" size="sm" className={classes.all} onClick={onClose}>
        {t("all")}
      </Anchor>
    </section>
  );
}

function Item({ notification, onOpen }: { notification: NotificationOut; onOpen: () => void }) {
  const t = useText(notificationTexts);
  const { title, body } = wordsOf(notification);
  return (
    <UnstyledButton
      component={Link}
      to={placeOf(notification) ?? "/notifications"}
      className={classes.item}
      data-unread={!notification.is_read || undefined}
      onClick={onOpen}
    >
      <Text size="sm" fw={notification.is_read ? 400 : 600}>
        {!notification.is_read && <span className="only-screen-reader">{t("unread")}: </span>}
        {title}
      </Text>
      <Text size="xs" c="dimmed" lineClamp={2}>
        {body}
      </Text>
      <Text size="xs" c="dimmed">
        <Time at={notification.created_at} />
      </Text>
    </UnstyledButton>
  );
}
