import { Button, Group, Text } from "@mantine/core";
import { api, data, keys, type SessionOut, useListing } from "../../api";
import { type Column, CursorTable, Empty, StateBadge, Time, useAct } from "../../components";
import { useText } from "../../i18n";
import { accountTexts } from "./account.texts";
import { browserOf } from "./browser";

export function Sessions() {
  const t = useText(accountTexts);
  const { act } = useAct(keys.sessions.all);
  const listing = useListing<SessionOut>(keys.sessions.all, (cursor) =>
    data(api.GET("/v1/sessions", { params: { query: { limit: 50, cursor } } })),
  );
  const columns: Column<SessionOut>[] = [
    {
      key: "browser",
      header: t("browser"),
      width: "minmax(10rem, 1.5fr)",
      phone: "title",
      cell: (session) => (
        <Group gap="xs">
          <span title={session.user_agent ?? ""}>{browserOf(session.user_agent)}</span>
          {session.current && <StateBadge state="ACTIVE" label={t("thisOne")} />}
        </Group>
      ),
    },
    { key: "ip", header: t("from"), width: "9rem", cell: (session) => <code>{session.client_ip ?? "–"}</code> },
    { key: "seen", header: t("seen"), width: "9rem", cell: (session) => <Time at={session.last_seen_at} /> },
    { key: "expires", header: t("expires"), width: "9rem", cell: (session) => <Time at={session.expires_at} /> },
    {
      key: "end",
      header: "",
      width: "7rem",
      align: "end",
      cell: (session) =>
        session.current ? null : (
          <Button
            size="compact-sm"
            variant="default"
            onClick={() =>
              void act(() => api.DELETE("/v1/sessions/{session_id}", { params: { path: { session_id: session.id } } }))
            }
          >
            {t("end")}
          </Button>
        ),
    },
  ];
  return (
    <>
      <Group justify="space-between" mb="sm">
        <Text size="sm" c="dimmed">
          {t("sessionsText")}
        </Text>
        <Button
          variant="default"
          size="xs"
          onClick={() =>
            void act(
              () => data(api.DELETE("/v1/sessions")),
              ({ ended }) => t("ended", { n: ended }),
            )
          }
        >
          {t("endOthers")}
        </Button>
      </Group>
      <CursorTable
        label={t("sessions")}
        listing={listing}
        columns={columns}
        rowKey={(session) => session.id}
        empty={<Empty title={t("sessions")} />}
      />
    </>
  );
}
