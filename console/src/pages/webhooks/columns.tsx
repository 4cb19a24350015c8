import { Text } from "@mantine/core";
import type { EndpointOut } from "../../api";
import { type Column, StateBadge, Time } from "../../components";
import { useText } from "../../i18n";
import { healthOf } from "./health";
import { webhookTexts } from "./webhooks.texts";

/** The columns that every list of endpoints has. */
export function useEndpointColumns(): Record<"name" | "url" | "state" | "created", Column<EndpointOut>> {
  const t = useText(webhookTexts);
  return {
    name: {
      key: "name",
      header: t("name"),
      width: "minmax(8rem, 1fr)",
      phone: "title",
      cell: ({ name }) => (
        <Text size="sm" fw={600} truncate>
          {name}
        </Text>
      ),
    },
    url: {
      key: "url",
      header: t("url"),
      width: "minmax(10rem, 1.6fr)",
      phone: "hidden",
      cell: ({ url }) => (
        <Text size="sm" c="dimmed" truncate>
          {url}
        </Text>
      ),
    },
    state: {
      key: "state",
      header: t("state"),
      width: "8rem",
      cell: (endpoint) => <StateBadge state={healthOf(endpoint)} />,
    },
    created: {
      key: "created",
      header: t("created"),
      width: "8rem",
      cell: ({ created_at }) => <Time at={created_at} />,
    },
  };
}
