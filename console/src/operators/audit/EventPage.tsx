import { Button, Text } from "@mantine/core";
import { useQuery } from "@tanstack/react-query";
import { Link, useParams } from "react-router";
import { api, data, type EventOut, isApiError, keys } from "../../api";
import {
  Fact,
  Facts,
  IconDownload,
  IdFact,
  Loaded,
  Page,
  Panel,
  StateBadge,
  Time,
  tell,
  useAct,
} from "../../components";
import { useText, wordFor } from "../../i18n";
import { nameOf } from "./AuditPage";
import { auditTexts, kindTexts } from "./audit.texts";
import { badgeOf } from "./badge";
import { Diff } from "./Diff";

/** One event: both sides of the change, and everything that is known of who made it. */
export default function EventPage() {
  const { eventId = "" } = useParams();
  const query = useQuery({
    queryKey: keys.auditEvent(eventId),
    queryFn: () => data(api.GET("/v1/audit/events/{event_id}", { params: { path: { event_id: eventId } } })),
    staleTime: Number.POSITIVE_INFINITY, // what happened does not change
  });
  return <Loaded query={query}>{(event) => <Event event={event} />}</Loaded>;
}

/** Events of the last moments have no proof yet. */
function unlessNotSealed(refusal: unknown): null {
  if (isApiError(refusal, "not_sealed")) return null;
  throw refusal;
}

function Event({ event }: { event: EventOut }) {
  const t = useText(auditTexts);
  const params = { path: { event_id: event.id } };
  const { act } = useAct();
  const prove = () =>
    act(async () => {
      const proof = await data(api.GET("/v1/audit/events/{event_id}/proof", { params })).catch(unlessNotSealed);
      if (proof === null) return tell(t("notSealed"));
      const url = URL.createObjectURL(new Blob([JSON.stringify(proof, null, 2)], { type: "application/json" }));
      const link = document.createElement("a");
      link.href = url;
      link.download = `${event.id}.proof.json`;
      link.click();
      URL.revokeObjectURL(url);
    });
  return (
    <Page
      title={`${wordFor(kindTexts, event.resource_type)} ${nameOf(event)}`}
      text={
        <>
          <StateBadge state={event.action} {...badgeOf(event)} /> <Time at={event.created_at} exact />
        </>
      }
      actions={
        <Button
          variant="default"
          leftSection={<IconDownload size={16} />}
          title={t("proofText")}
          onClick={() => void prove()}
        >
          {t("proof")}
        </Button>
      }
    >
      <Panel title={t("diff")}>
        {event.diff_object ? (
          <Diff diff={event.diff_object} />
        ) : (
          <Text size="sm" c="dimmed">
            {t("noDiff")}
          </Text>
        )}
      </Panel>
      <Panel title={t("facts")}>
        <EventFacts event={event} />
      </Panel>
    </Page>
  );
}

function EventFacts({ event }: { event: EventOut }) {
  const t = useText(auditTexts);
  const link = linkOf(event);
  return (
    <Facts>
      <Fact name={t("who")}>
        <Link to={`/operators/audit?user_id=${encodeURIComponent(event.user.uid)}`}>
          {event.user.username || event.user.uid}
        </Link>
      </Fact>
      <Fact name={t("role")}>{event.actor_type}</Fact>
      <Fact name={t("resourceId")}>
        {link ? <Link to={link}>{event.resource.identifier}</Link> : event.resource.identifier}
      </Fact>
      {event.space_path && <Fact name={t("path")}>{event.space_path}</Fact>}
      {event.client_ip && <Fact name={t("address")}>{event.client_ip}</Fact>}
      {event.request_method && <Fact name={t("method")}>{event.request_method}</Fact>}
      <IdFact name={t("request")} id={event.request_id} />
      <IdFact name={t("trace")} id={event.trace_id} />
      <Fact name={t("number")}>{event.seq}</Fact>
      <IdFact name={t("event")} id={event.id} />
      {event.user_agent && <Fact name={t("agent")}>{event.user_agent}</Fact>}
      {Object.entries(event.data ?? {}).map(([name, value]) => (
        <Fact key={name} name={name}>
          {value}
        </Fact>
      ))}
    </Facts>
  );
}

/** Where the thing itself is, if it has a page. */
function linkOf(event: EventOut): string | null {
  const id = event.resource.identifier;
  if (id === "*") return null;
  switch (event.resource_type) {
    case "task":
      return `/operators/tasks/${id}`;
    case "scheduledTask":
      return `/operators/schedules/${id}`;
    case "execution":
      return `/operators/runs/${id}`;
    case "user":
      return `/operators/users/${id}`;
    default:
      return null;
  }
}
