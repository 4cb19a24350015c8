import { type KeyboardEvent, useState } from "react";
import type { Size } from "../media";
import type { Stroke } from "./drawing";
import type { Tool } from "./editor";
import { type Box, firstBox, nudged } from "./keyboardBox";

/** A box drawn with the keyboard alone: Enter begins it, arrows move and resize it, Enter keeps it, Escape gives it up. */
export function useKeyboardBox(size: Size, tool: Tool, onStroke: (stroke: Stroke) => void) {
  const [box, setBox] = useState<Box | null>(null);
  const onKeyDown = (event: KeyboardEvent) => {
    if (event.key === "Enter") {
      if (box !== null) onStroke({ kind: tool === "keep" ? "keep" : "box", box });
      setBox(box === null ? firstBox(size) : null);
    } else if (box === null) return;
    else if (event.key === "Escape") setBox(null);
    else {
      const next = nudged(box, event, size);
      if (next === null) return;
      setBox(next);
    }
    event.preventDefault();
    event.stopPropagation();
  };
  return { box, onKeyDown };
}
