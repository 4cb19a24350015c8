import { Alert, Button, Group, Text } from "@mantine/core";
import { ApiError } from "../api";
import { language, useText, wordFor } from "../i18n";
import { commonTexts } from "./components.texts";
import { errorTexts } from "./errors.texts";
import { Id } from "./Id";
import { IconAlertTriangle } from "./icons";

/** How an error is shown, everywhere: in words, with the id of the request to quote. */
export function ProblemAlert({ error, onRetry, title }: { error: unknown; onRetry?: () => void; title?: string }) {
  const t = useText(commonTexts);
  // A wrong password, or what does not exist: nothing to ask help for, and a retry changes nothing.
  const isExpected = error instanceof ApiError && (error.status === 401 || error.status === 404);
  const requestId = error instanceof ApiError && !isExpected ? error.requestId : null;
  const retry = isExpected ? undefined : onRetry;
  const fields = error instanceof ApiError ? Object.entries(error.fields) : [];
  return (
    <Alert
      variant="light"
      color="red"
      icon={<IconAlertTriangle />}
      title={title ?? errorWords(error)}
      styles={{
        root: { background: "var(--bad-ground)" },
        title: { color: "var(--bad-ink)" },
        icon: { color: "var(--bad-ink)" },
        message: { color: "var(--ink)" },
      }}
      role="alert"
    >
      {title !== undefined && <Text size="sm">{errorWords(error)}</Text>}
      {fields.map(([field, message]) => (
        <Text size="sm" key={field}>
          <b>{field}</b>: {message}
        </Text>
      ))}
      {(requestId !== null || retry) && (
        <Group gap="sm" mt={4}>
          {requestId !== null && (
            <Text size="xs" c="dimmed" component="div">
              {t("quote")} <Id id={requestId} full />
            </Text>
          )}
          {retry && (
            <Button size="compact-sm" variant="default" onClick={retry}>
              {t("retry")}
            </Button>
          )}
        </Group>
      )}
    </Alert>
  );
}

/** An error as a sentence, in the reader's language where there is one for it. */
export function errorWords(error: unknown): string {
  if (!(error instanceof ApiError)) {
    return error instanceof Error
      ? `${wordFor(errorTexts, "unknown")} (${error.message})`
      : wordFor(errorTexts, "unknown");
  }
  const known = wordFor(errorTexts, error.code);
  const said = error.problem.detail;
  if (known === error.code) return said ?? wordFor(errorTexts, "unknown");
  if (error.code === "validation_failed") return known; // what the server says of it is for programs
  // The server's own sentence has the figures; it speaks English.
  return language() === "en" && said && error.status < 500 && error.status > 0 ? said : known;
}
