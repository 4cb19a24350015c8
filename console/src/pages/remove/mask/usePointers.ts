import { type Dispatch, type PointerEvent, type RefObject, useEffect, useRef, useState } from "react";
import { boxBetween, type Point, type Stroke } from "./drawing";
import type { Action, Tool } from "./editor";
import { isZooming, pinch, toPicture, type View, wheelFactor, zoom } from "./view";

interface Setting {
  readonly frame: RefObject<HTMLDivElement | null>;
  readonly width: number;
  readonly height: number;
  readonly view: View;
  readonly smallest: number;
  readonly tool: Tool;
  readonly size: number;
  readonly dispatch: Dispatch<Action>;
  readonly drawNow: (stroke: Stroke) => void;
  readonly redraw: () => void;
  readonly onStroke: (stroke: Stroke) => void;
  /** A click with the tool that selects. */
  readonly onSelect?: ((at: Point) => void) | undefined;
  /** Within a page the wheel scrolls the page, and zooms with Ctrl. */
  readonly inline?: boolean;
}

const CLICK_PX = 6; // a pointer that moved less has clicked

type Gesture =
  | { kind: "draw"; points: Point[] }
  | { kind: "box"; from: Point }
  | { kind: "pan"; last: Point }
  | { kind: "pinch" }
  | { kind: "select"; from: Point }
  | null;

/** Mouse, pen and fingers over the picture: one draws, two pinch; the wheel zooms, with Shift it sizes the brush. */
export function usePointers(setting: Setting) {
  const { frame, width, height, view, tool, size } = setting;
  const pointers = useRef(new Map<number, Point>());
  const gesture = useRef<Gesture>(null);
  const [hover, setHover] = useState<Point | null>(null);
  const [rubber, setRubber] = useState<readonly [number, number, number, number] | null>(null);
  const [holding, setHolding] = useState(false);
  const latest = useRef(setting);
  useEffect(() => {
    latest.current = setting;
  });

  const placeOf = (event: { clientX: number; clientY: number }): Point => {
    const box = frame.current?.getBoundingClientRect();
    return { x: event.clientX - (box?.left ?? 0), y: event.clientY - (box?.top ?? 0) };
  };

  useEffect(() => {
    const element = frame.current;
    if (!element) return;
    // React's own listener could not keep the page from scrolling.
    const onWheel = (event: WheelEvent) => {
      if (latest.current.inline && !event.ctrlKey && !event.metaKey && !event.shiftKey) return;
      event.preventDefault();
      const now = latest.current;
      const delta = event.deltaY || event.deltaX;
      if (event.shiftKey && !event.ctrlKey) {
        now.dispatch({ type: "resize", by: delta < 0 ? 1.15 : 0.87 });
        return;
      }
      if (!isZooming(event)) {
        now.dispatch({
          type: "view",
          change: (before) => ({ ...before, x: before.x - event.deltaX, y: before.y - event.deltaY }),
        });
        return;
      }
      const box = element.getBoundingClientRect();
      const at = { x: event.clientX - box.left, y: event.clientY - box.top };
      const factor = wheelFactor(event.ctrlKey, delta);
      now.dispatch({ type: "view", change: (before) => zoom(before, factor, at, now.smallest) });
    };
    const onKey = (event: KeyboardEvent) => {
      // Within a page, Space belongs to the page unless the pointer is over the picture.
      const isOurs = !latest.current.inline || element.matches(":hover");
      if (event.code === "Space" && isOurs && !(event.target instanceof HTMLInputElement)) {
        setHolding(event.type === "keydown");
        event.preventDefault();
      }
    };
    element.addEventListener("wheel", onWheel, { passive: false });
    window.addEventListener("keydown", onKey);
    window.addEventListener("keyup", onKey);
    return () => {
      element.removeEventListener("wheel", onWheel);
      window.removeEventListener("keydown", onKey);
      window.removeEventListener("keyup", onKey);
    };
  }, [frame]);

  const down = (event: PointerEvent) => {
    const at = placeOf(event);
    event.currentTarget.setPointerCapture(event.pointerId);
    pointers.current.set(event.pointerId, at);
    if (pointers.current.size === 2) {
      gesture.current = { kind: "pinch" }; // what the first finger began is not meant
      setRubber(null);
      setting.redraw();
      return;
    }
    if (tool === "pan" || holding || event.button === 1) gesture.current = { kind: "pan", last: at };
    else if (event.button !== 0) gesture.current = null;
    else if (tool === "select") gesture.current = { kind: "select", from: at };
    else if (tool === "box" || tool === "keep") gesture.current = { kind: "box", from: toPicture(view, at) };
    else {
      const point = toPicture(view, at);
      gesture.current = { kind: "draw", points: [point] };
      setting.drawNow({ kind: tool, size, points: [point] });
    }
  };

  const move = (event: PointerEvent) => {
    const at = placeOf(event);
    setHover(at);
    const before = pointers.current.get(event.pointerId);
    if (before === undefined) return;
    const others = [...pointers.current.entries()].filter(([id]) => id !== event.pointerId);
    pointers.current.set(event.pointerId, at);
    const now = gesture.current;
    if (now?.kind === "pinch" && others[0]) {
      const other = others[0][1];
      setting.dispatch({
        type: "view",
        change: (current) => pinch(current, [before, other], [at, other], setting.smallest),
      });
    } else if (now?.kind === "pan") {
      setting.dispatch({
        type: "view",
        change: (current) => ({ ...current, x: current.x + at.x - before.x, y: current.y + at.y - before.y }),
      });
    } else if (now?.kind === "draw" && (tool === "brush" || tool === "eraser")) {
      const point = toPicture(view, at);
      const last = now.points.at(-1) ?? point;
      if (Math.hypot(point.x - last.x, point.y - last.y) * view.scale < 1.5) return;
      now.points.push(point);
      setting.drawNow({ kind: tool, size, points: [last, point] });
    } else if (now?.kind === "box") {
      setRubber(boxBetween(now.from, toPicture(view, at), width, height));
    }
  };

  const up = (event: PointerEvent) => {
    const at = pointers.current.get(event.pointerId);
    if (!pointers.current.delete(event.pointerId)) return;
    const now = gesture.current;
    if (pointers.current.size > 0) return;
    gesture.current = null;
    setRubber(null);
    if (event.pointerType === "touch") setHover(null);
    if (event.type === "pointercancel") {
      setting.redraw(); // the browser scrolls with this finger
      return;
    }
    if (now?.kind === "select" && at && Math.hypot(at.x - now.from.x, at.y - now.from.y) < CLICK_PX) {
      setting.onSelect?.(toPicture(view, at));
    }
    if (now?.kind === "draw" && (tool === "brush" || tool === "eraser")) {
      setting.onStroke({ kind: tool, size, points: now.points });
    } else if (now?.kind === "box" && at) {
      const box = boxBetween(now.from, toPicture(view, at), width, height);
      if (box) setting.onStroke({ kind: tool === "keep" ? "keep" : "box", box });
    }
  };

  const handlers = {
    onPointerDown: down,
    onPointerMove: move,
    onPointerUp: up,
    onPointerCancel: up,
    onPointerLeave: () => setHover(null),
  };
  return { handlers, hover, rubber, isPanning: tool === "pan" || holding };
}
