import { useEffect, useRef } from "react";
import { type History, redo, undo } from "./drawing";
import type { Tool } from "./usePointers";

interface Shortcuts {
  readonly setTool: (tool: Tool) => void;
  readonly setSize: (change: (size: number) => number) => void;
  readonly setHistory: (change: (history: History) => History) => void;
  readonly nearer: (by: number) => void;
  readonly fit: () => void;
  readonly fullScreen: () => void;
  readonly boxesOnly: boolean;
}

/** The editor's keys, as docs/howto/console.md lists them. */
export function useShortcuts(actions: Shortcuts): void {
  const latest = useRef(actions);
  useEffect(() => {
    latest.current = actions;
  });
  useEffect(() => {
    const onKey = (event: KeyboardEvent) => {
      if (event.target instanceof HTMLInputElement) return;
      const now = latest.current;
      const key = event.key.toLowerCase();
      if (event.ctrlKey || event.metaKey) {
        if (key === "z") now.setHistory(event.shiftKey ? redo : undo);
        else if (key === "y") now.setHistory(redo);
        else return;
      } else if (key === "b" && !now.boxesOnly) now.setTool("brush");
      else if (key === "e" && !now.boxesOnly) now.setTool("eraser");
      else if (key === "r") now.setTool("box");
      else if (key === "k") now.setTool("keep");
      else if (key === "h") now.setTool("pan");
      else if (key === "[") now.setSize((size) => Math.max(2, Math.round(size * 0.85)));
      else if (key === "]") now.setSize((size) => Math.min(400, Math.round(size * 1.18) + 1));
      else if (key === "+" || key === "=") now.nearer(1.25);
      else if (key === "-") now.nearer(0.8);
      else if (key === "0") now.fit();
      else if (key === "f") now.fullScreen();
      else return;
      event.preventDefault();
    };
    window.addEventListener("keydown", onKey);
    return () => window.removeEventListener("keydown", onKey);
  }, []);
}
