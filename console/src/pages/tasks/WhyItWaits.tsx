import { Stack, Text } from "@mantine/core";
import { useQuery } from "@tanstack/react-query";
import { api, data, keys } from "../../api";
import { useLanguage, useText, wordFor } from "../../i18n";
import { tasksTexts, whyTexts } from "./tasks.texts";

/** Why a task is not running, in the server's order of importance. */
export function WhyItWaits({ taskId }: { taskId: string }) {
  const t = useText(tasksTexts);
  const language = useLanguage();
  const why = useQuery({
    queryKey: keys.tasks.why(taskId),
    queryFn: () => data(api.GET("/v1/tasks/{task_id}/why", { params: { path: { task_id: taskId } } })),
    refetchInterval: 4000,
  });
  if (!why.data) return null;
  return (
    <div data-testid="why">
      <Text size="sm" fw={600} mb={4}>
        {t("why")}
      </Text>
      <Stack gap={4}>
        {why.data.reasons.map((reason) => (
          <Text key={reason.code + reason.text} size="sm" c="dimmed">
            {/* The server's sentence has the names and figures; it speaks English. */}
            {language === "en" ? reason.text : wordFor(whyTexts, reason.code)}
          </Text>
        ))}
      </Stack>
    </div>
  );
}
