import { Anchor, Group, Stack, Text } from "@mantine/core";
import { useQuery } from "@tanstack/react-query";
import { Link } from "react-router";
import { api, data, keys } from "../../api";
import { commonTexts, Loaded, StateBadge, Time } from "../../components";
import { useText, wordFor } from "../../i18n";
import { kindTexts } from "../audit/audit.texts";
import { badgeOf } from "../audit/badge";

const SHOWN = 10;

/** Of one thing, or of what one user did. */
interface Filter {
  readonly resource_id?: string;
  readonly user_id?: string;
}

/** The page of the whole trail with this filter. */
export function auditOf(filter: Filter): string {
  return `/operators/audit?${new URLSearchParams({ ...filter, action: "*" })}`;
}

/** The newest audit events, a line each: when, who, what. */
export function AuditList({ filter }: { filter: Filter }) {
  const common = useText(commonTexts);
  const query = useQuery({
    queryKey: keys.audit.list({ ...filter, limit: SHOWN }),
    queryFn: async () =>
      (await data(api.GET("/v1/audit/events", { params: { query: { ...filter, limit: SHOWN } } }))).items,
    staleTime: 60_000, // each read is audited
  });
  return (
    <Loaded query={query} lines={3}>
      {(found) =>
        found.length === 0 ? (
          <Text size="sm" c="dimmed">
            {common("none")}
          </Text>
        ) : (
          <Stack gap={6}>
            {found.map((event) => (
              <Group key={event.id} gap="sm" wrap="nowrap">
                <StateBadge state={event.action} {...badgeOf(event)} />
                <Text size="sm" truncate flex={1} miw={0}>
                  {filter.resource_id
                    ? event.user.username || event.user.uid
                    : `${wordFor(kindTexts, event.resource_type)} ${event.resource.data?.title ?? event.resource.data?.name ?? ""}`}
                </Text>
                <Anchor component={Link} to={`/operators/audit/${event.id}`} size="sm">
                  <Time at={event.created_at} />
                </Anchor>
              </Group>
            ))}
          </Stack>
        )
      }
    </Loaded>
  );
}
