import { type Dispatch, useEffect, useRef } from "react";
import type { Action } from "./editor";

interface Shortcuts {
  readonly dispatch: Dispatch<Action>;
  readonly nearer: (by: number) => void;
  readonly fullScreen: () => void;
  readonly boxesOnly: boolean;
  readonly selects: boolean;
}

/** The editor's keys, as docs/howto/console.md lists them. */
export function useShortcuts(actions: Shortcuts): void {
  const latest = useRef(actions);
  useEffect(() => {
    latest.current = actions;
  });
  useEffect(() => {
    const onKey = (event: KeyboardEvent) => {
      const { target } = event;
      if (target instanceof HTMLInputElement || target instanceof HTMLTextAreaElement || event.altKey) return;
      const now = latest.current;
      const key = event.key.toLowerCase();
      if (event.ctrlKey || event.metaKey) {
        if (key === "z") now.dispatch({ type: event.shiftKey ? "redo" : "undo" });
        else if (key === "y") now.dispatch({ type: "redo" });
        else return;
      } else if (key === "b" && !now.boxesOnly) now.dispatch({ type: "tool", tool: "brush" });
      else if (key === "e" && !now.boxesOnly) now.dispatch({ type: "tool", tool: "eraser" });
      else if (key === "v" && now.selects) now.dispatch({ type: "tool", tool: "select" });
      else if (key === "r") now.dispatch({ type: "tool", tool: "box" });
      else if (key === "k") now.dispatch({ type: "tool", tool: "keep" });
      else if (key === "h") now.dispatch({ type: "tool", tool: "pan" });
      else if (key === "[") now.dispatch({ type: "resize", by: 0.85 });
      else if (key === "]") now.dispatch({ type: "resize", by: 1.2 });
      else if (key === "+" || key === "=") now.nearer(1.25);
      else if (key === "-") now.nearer(0.8);
      else if (key === "0") now.dispatch({ type: "fit" });
      else if (key === "f") now.fullScreen();
      else return;
      event.preventDefault();
    };
    window.addEventListener("keydown", onKey);
    return () => window.removeEventListener("keydown", onKey);
  }, []);
}
