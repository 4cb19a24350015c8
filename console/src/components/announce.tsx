import { VisuallyHidden } from "@mantine/core";
import { useSyncExternalStore } from "react";

// What a screen reader says although nothing was focused: that a removal is done, say.
const listeners = new Set<() => void>();
let said = "";

export function announce(text: string): void {
  said = text;
  for (const tell of listeners) tell();
}

/** Once on every page: a live region must be there before its text. */
export function Announcer() {
  const text = useSyncExternalStore(
    (tell) => {
      listeners.add(tell);
      return () => listeners.delete(tell);
    },
    () => said,
  );
  return (
    <VisuallyHidden role="status" aria-live="polite" data-testid="announcer">
      {text}
    </VisuallyHidden>
  );
}
