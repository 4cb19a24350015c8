import { ActionIcon, Group, Switch, Text, Tooltip } from "@mantine/core";
import {
  type KeyboardEvent,
  type PointerEvent,
  type ReactNode,
  useEffect,
  useLayoutEffect,
  useRef,
  useState,
} from "react";
import { type Icon, IconFocusCentered, IconSelector, IconZoomIn, IconZoomOut } from "../../components";
import { useText } from "../../i18n";
import classes from "./CompareSlider.module.css";
import type { Point } from "./mask/drawing";
import { fitted, isZooming, pinch, type View, wheelFactor, zoom } from "./mask/view";
import type { Size } from "./media";
import { removalTexts } from "./remove.texts";

interface Props {
  /** Pictures or films of the same size. */
  readonly before: ReactNode;
  readonly after: ReactNode;
  /** In whose pixels the boxes are. */
  readonly size: Size;
  readonly boxes: readonly (readonly number[])[];
}

const MIDDLE = 50;

/** Where the line begins: at the middle of the marks, where both sides differ. In percent of the width. */
export function middleOf(boxes: Props["boxes"], width: number): number {
  if (boxes.length === 0 || width <= 0) return MIDDLE;
  const left = Math.min(...boxes.map(([x = 0]) => x));
  const right = Math.max(...boxes.map(([x = 0, , w = 0]) => x + w));
  return Math.round(Math.min(95, Math.max(5, ((left + right) / 2 / width) * 100)));
}

/** Before and after on top of each other, with a line to drag between them; both zoom and move together. */
export function CompareSlider({ before, after, size, boxes }: Props) {
  const t = useText(removalTexts);
  const frame = useRef<HTMLDivElement>(null);
  const [share, setShare] = useState(() => middleOf(boxes, size.width));
  const moved = useRef(false);
  const middle = middleOf(boxes, size.width);
  useEffect(() => {
    // What was found may come after the picture; once the line was moved, it stays.
    if (!moved.current) setShare(middle);
  }, [middle]);
  const [whole, setWhole] = useState<View>({ scale: 1, x: 0, y: 0 });
  const [view, setView] = useState<View>(whole);
  const [showBoxes, setShowBoxes] = useState(false);
  const pointers = useRef(new Map<number, Point>());
  const dragging = useRef<"line" | "picture" | null>(null);
  const zoomed = useRef(false);
  useEffect(() => {
    zoomed.current = view.scale > whole.scale * 1.01;
  }, [view, whole]);

  // Before the first paint: a picture at another size would flash.
  useLayoutEffect(() => {
    const element = frame.current;
    if (!element) return;
    const showWhole = () => {
      const found = fitted(size, { width: element.clientWidth, height: element.clientHeight }, 0);
      setWhole(found);
      setView(found);
    };
    showWhole();
    const observer = new ResizeObserver(showWhole);
    observer.observe(element);
    const onWheel = (event: WheelEvent) => {
      if (!isZooming(event)) {
        // Two fingers on a trackpad: they move what is zoomed, and the page otherwise.
        if (!zoomed.current) return;
        event.preventDefault();
        setView((now) => ({ ...now, x: now.x - event.deltaX, y: now.y - event.deltaY }));
        return;
      }
      event.preventDefault();
      const box = element.getBoundingClientRect();
      const at = { x: event.clientX - box.left, y: event.clientY - box.top };
      const factor = wheelFactor(event.ctrlKey, event.deltaY);
      setView((now) => zoom(now, factor, at, 0.05));
    };
    element.addEventListener("wheel", onWheel, { passive: false });
    return () => {
      observer.disconnect();
      element.removeEventListener("wheel", onWheel);
    };
  }, [size]);

  const placeOf = (event: PointerEvent): Point => {
    const box = frame.current?.getBoundingClientRect();
    return { x: event.clientX - (box?.left ?? 0), y: event.clientY - (box?.top ?? 0) };
  };
  const shareAt = (at: Point) => Math.min(100, Math.max(0, (at.x / (frame.current?.clientWidth || 1)) * 100));
  const down = (event: PointerEvent) => {
    const at = placeOf(event);
    event.currentTarget.setPointerCapture(event.pointerId);
    pointers.current.set(event.pointerId, at);
    const line = ((frame.current?.clientWidth ?? 0) * share) / 100;
    // As long as the whole picture is seen there is nothing to move but the line.
    dragging.current = Math.abs(at.x - line) < 28 || !zoomed.current ? "line" : "picture";
    if (dragging.current === "line") {
      moved.current = true;
      setShare(shareAt(at));
    }
  };
  const move = (event: PointerEvent) => {
    const last = pointers.current.get(event.pointerId);
    if (!last) return;
    const at = placeOf(event);
    const other = [...pointers.current.entries()].find(([id]) => id !== event.pointerId)?.[1];
    pointers.current.set(event.pointerId, at);
    if (other) setView((now) => pinch(now, [last, other], [at, other], 0.05));
    else if (dragging.current === "line") setShare(shareAt(at));
    else setView((now) => ({ ...now, x: now.x + at.x - last.x, y: now.y + at.y - last.y }));
  };
  const up = (event: PointerEvent) => {
    pointers.current.delete(event.pointerId);
  };
  const onKey = (event: KeyboardEvent) => {
    const step = event.shiftKey ? 10 : 2;
    moved.current = true;
    if (event.key === "ArrowLeft") setShare((now) => Math.max(0, now - step));
    else if (event.key === "ArrowRight") setShare((now) => Math.min(100, now + step));
    else if (event.key === "Home") setShare(0);
    else if (event.key === "End") setShare(100);
    else return;
    event.preventDefault();
  };
  const nearer = (by: number) => {
    const element = frame.current;
    setView((now) => zoom(now, by, { x: (element?.clientWidth ?? 0) / 2, y: (element?.clientHeight ?? 0) / 2 }, 0.05));
  };
  const stage = {
    width: size.width,
    height: size.height,
    transform: `translate(${view.x}px, ${view.y}px) scale(${view.scale})`,
  };
  return (
    <div className={classes.slider}>
      <div
        ref={frame}
        className={classes.frame}
        style={{
          aspectRatio: `${size.width} / ${size.height}`,
          // A tall picture makes a narrow frame: the line is to run over the picture, not beside it.
          width: `min(100%, calc(72vh * ${size.width / size.height}))`,
        }}
        data-testid="compare"
        onPointerDown={down}
        onPointerMove={move}
        onPointerUp={up}
        onPointerCancel={up}
      >
        <div className={classes.stage} style={stage}>
          {after}
        </div>
        <div className={classes.half} style={{ clipPath: `inset(0 ${100 - share}% 0 0)` }}>
          <div className={classes.stage} style={stage}>
            {before}
          </div>
        </div>
        {showBoxes && (
          <div className={classes.stage} style={stage} data-testid="found-boxes">
            <svg viewBox={`0 0 ${size.width} ${size.height}`} aria-hidden="true">
              {boxes.map(([x, y, w, h]) => (
                <rect key={`${x},${y},${w},${h}`} x={x} y={y} width={w} height={h} />
              ))}
            </svg>
          </div>
        )}
        <span className={classes.label} data-side="before">
          {t("before")}
        </span>
        <span className={classes.label} data-side="after">
          {t("after")}
        </span>
        <div
          className={classes.line}
          style={{ left: `${share}%` }}
          role="slider"
          tabIndex={0}
          aria-label={t("slider")}
          aria-valuemin={0}
          aria-valuemax={100}
          aria-valuenow={Math.round(share)}
          onKeyDown={onKey}
        >
          <span className={classes.knob}>
            <IconSelector size={18} />
          </span>
        </div>
      </div>
      <Group justify="space-between" gap="xs" mt={8}>
        {boxes.length > 0 ? (
          <Switch
            size="sm"
            label={t("showFound")}
            checked={showBoxes}
            onChange={(event) => setShowBoxes(event.currentTarget.checked)}
          />
        ) : (
          <span />
        )}
        <Group gap={2}>
          <Tool label={t("zoomOut")} icon={IconZoomOut} onClick={() => nearer(0.8)} />
          <Text size="xs" c="dimmed" w={44} ta="center" className="figures">
            {Math.round(view.scale * 100)} %
          </Text>
          <Tool label={t("zoomIn")} icon={IconZoomIn} onClick={() => nearer(1.25)} />
          <Tool label={t("fit")} icon={IconFocusCentered} onClick={() => setView(whole)} />
        </Group>
      </Group>
    </div>
  );
}

function Tool({ label, icon: Drawn, onClick }: { label: string; icon: Icon; onClick: () => void }) {
  return (
    <Tooltip label={label}>
      <ActionIcon variant="subtle" color="gray" aria-label={label} onClick={onClick}>
        <Drawn />
      </ActionIcon>
    </Tooltip>
  );
}
