import { ActionIcon, Button, Divider, FileButton, Group, Slider, Text, Tooltip, VisuallyHidden } from "@mantine/core";
import { type ReactNode, useCallback, useEffect, useId, useReducer, useRef } from "react";
import { ApiError } from "../../../api";
import {
  commonTexts,
  type Icon,
  IconArrowBackUp,
  IconArrowForwardUp,
  IconBrush,
  IconDeviceFloppy,
  IconEraser,
  IconFocusCentered,
  IconFolderOpen,
  IconHandStop,
  IconMaximize,
  IconPalette,
  IconPointer,
  IconShieldCheck,
  IconSquare,
  IconTrash,
  IconZoomIn,
  IconZoomOut,
  tell,
  tellError,
} from "../../../components";
import { useText } from "../../../i18n";
import { effective, type MaskDrawing, onPage, type Point, type Stroke } from "./drawing";
import { COLOURS, type Colour, edit, opened, type Tool } from "./editor";
import classes from "./MaskEditor.module.css";
import { maskTexts } from "./mask.texts";
import { maskFile, readMask } from "./paint";
import { useCanvas } from "./useCanvas";
import { useKeyboardBox } from "./useKeyboardBox";
import { usePointers } from "./usePointers";
import { useShortcuts } from "./useShortcuts";
import { fitted, zoom } from "./view";

interface Props {
  readonly picture: string;
  readonly width: number;
  readonly height: number;
  readonly initial: MaskDrawing | null;
  /** Of documents only boxes can be said. */
  readonly boxesOnly?: boolean;
  /** What else belongs to the mask: which pages, which frame. */
  readonly extra?: ReactNode;
  /** Of documents: the page that is seen, and whether boxes that are drawn now are for this one only. */
  readonly page?: { readonly number: number; readonly only: boolean };
  /** Hears of every stroke, so that nothing is lost when the page goes. */
  readonly onChange?: (drawing: MaskDrawing) => void;
  /** Left out within a page, where nothing is closed. */
  readonly onUse?: ((drawing: MaskDrawing) => void) | undefined;
  /** What using it means here, where that is more than keeping it. */
  readonly useLabel?: string | undefined;
  readonly onCancel?: (() => void) | undefined;
  /** What was found on this page, to be switched on and off by a click. */
  readonly regions?: readonly Region[] | undefined;
  readonly onToggle?: ((id: number) => void) | undefined;
  /** Opens the same picture over the whole window. */
  readonly onEnlarge?: (() => void) | undefined;
}

export interface Region {
  readonly id: number;
  readonly box: readonly number[];
  readonly on: boolean;
}

const MAX_INLINE_VH = 68;

/** The smallest region at this place: within a large one there may be another. */
export function regionAt(regions: readonly Region[], at: Point): Region | null {
  const [found] = regions
    .filter(({ box: [x = 0, y = 0, w = 0, h = 0] }) => at.x >= x && at.x <= x + w && at.y >= y && at.y <= y + h)
    .sort((one, other) => area(one) - area(other));
  return found ?? null;
}

const area = ({ box: [, , w = 0, h = 0] }: Region) => w * h;

/** A picture to paint a mark on. The mask is what is drawn; nothing is sent until it is used. */
export function MaskEditor({
  picture,
  width,
  height,
  initial,
  boxesOnly = false,
  extra,
  page,
  onChange,
  onUse,
  useLabel,
  onCancel,
  regions,
  onToggle,
  onEnlarge,
}: Props) {
  const inline = onUse === undefined;
  const t = useText(maskTexts);
  const common = useText(commonTexts);
  const described = useId();
  const root = useRef<HTMLDivElement>(null);
  const frame = useRef<HTMLDivElement>(null);
  const [editor, dispatch] = useReducer(edit, { width, height, initial, boxesOnly, selects: inline }, opened);
  const { history, tool, size, opacity, colour, view, whole } = editor;
  const first = useRef(history);
  const onlyPage = page?.only ? page.number : undefined;
  const onStroke = useCallback((stroke: Stroke) => dispatch({ type: "draw", stroke, page: onlyPage }), [onlyPage]);
  const seen = page ? onPage(history.done, page.number) : history.done;
  const tellChange = useRef(onChange);
  useEffect(() => {
    tellChange.current = onChange;
  });
  useEffect(() => {
    if (history !== first.current) tellChange.current?.({ width, height, strokes: history.done });
  }, [history, width, height]);
  const { ref: canvas, factor, drawNow, redraw } = useCanvas(width, height, seen, COLOURS[colour]);
  const smallest = Math.min(whole.scale / 2, 0.5);
  const pointers = usePointers({
    frame,
    width,
    height,
    view,
    smallest,
    dispatch,
    tool,
    size,
    drawNow,
    redraw,
    onStroke,
    inline,
    onSelect: (at) => {
      const found = regionAt(regions ?? [], at);
      if (found) onToggle?.(found.id);
    },
  });

  useEffect(() => {
    const element = frame.current;
    if (!element) return;
    const observer = new ResizeObserver(() => {
      const found = fitted({ width, height }, { width: element.clientWidth, height: element.clientHeight });
      dispatch({ type: "window", whole: found });
    });
    observer.observe(element);
    return () => observer.disconnect();
  }, [width, height]);

  const nearer = useCallback(
    (by: number) => {
      const element = frame.current;
      const middle = { x: (element?.clientWidth ?? 0) / 2, y: (element?.clientHeight ?? 0) / 2 };
      dispatch({ type: "view", change: (before) => zoom(before, by, middle, smallest) });
    },
    [smallest],
  );
  const fullScreen = () => {
    if (document.fullscreenElement) void document.exitFullscreen();
    else void root.current?.requestFullscreen?.();
  };
  const load = async (file: File | null) => {
    if (!file) return;
    try {
      const { url, size: found } = await readMask(file);
      onStroke({ kind: "image", url });
      if (found.width !== width || found.height !== height) {
        tell(t("wrongSize", { width: found.width, height: found.height }));
      }
    } catch {
      tellError(new ApiError(400, { code: "not_a_mask", detail: t("notAMask") }));
    }
  };
  const save = async () => {
    try {
      const file = await maskFile({ width, height, strokes: history.done }, "mask.png");
      const link = document.createElement("a");
      link.href = URL.createObjectURL(file);
      link.download = file.name;
      link.click();
    } catch (error) {
      tellError(error);
    }
  };
  const keyboard = useKeyboardBox({ width, height }, tool, onStroke);
  useShortcuts({ dispatch, nearer, fullScreen, boxesOnly, selects: inline });

  const drawn = pointers.rubber ?? keyboard.box;
  const boxes = effective(seen).flatMap((stroke) => (stroke.kind === "box" || stroke.kind === "keep" ? [stroke] : []));
  const tools: [Tool, string, Icon, string][] = [
    ...(inline ? ([["select", t("select"), IconPointer, "V"]] as [Tool, string, Icon, string][]) : []),
    ...(boxesOnly ? [] : ([["brush", t("brush"), IconBrush, "B"]] as [Tool, string, Icon, string][])),
    ["box", t("box"), IconSquare, "R"],
    ...(boxesOnly ? [] : ([["eraser", t("eraser"), IconEraser, "E"]] as [Tool, string, Icon, string][])),
    ["keep", t("keep"), IconShieldCheck, "K"],
    ["pan", t("pan"), IconHandStop, "H"],
  ];
  return (
    <div className={classes.editor} ref={root} data-testid="mask-editor" data-inline={inline || undefined}>
      <Group className={classes.bar} gap={4}>
        <div role="radiogroup" aria-label={t("title")} className={classes.tools}>
          {tools.map(([name, label, Drawn, key]) => (
            <Tooltip key={name} label={`${label} (${key})`}>
              <ActionIcon
                size="lg"
                role="radio"
                aria-checked={tool === name}
                aria-label={label}
                variant={tool === name ? "filled" : "subtle"}
                color={tool === name ? "water" : "gray"}
                onClick={() => dispatch({ type: "tool", tool: name })}
              >
                <Drawn />
              </ActionIcon>
            </Tooltip>
          ))}
        </div>
        <Divider orientation="vertical" />
        <IconButton
          label={t("undo")}
          icon={IconArrowBackUp}
          disabled={!history.done.length}
          onClick={() => dispatch({ type: "undo" })}
        />
        <IconButton
          label={t("redo")}
          icon={IconArrowForwardUp}
          disabled={!history.undone.length}
          onClick={() => dispatch({ type: "redo" })}
        />
        <IconButton
          label={t("clear")}
          icon={IconTrash}
          disabled={!effective(history.done).length}
          onClick={() => onStroke({ kind: "clear" })}
        />
        {!boxesOnly && (
          <>
            <Divider orientation="vertical" />
            <Tooltip label={t("size")}>
              <div className={classes.slider}>
                <IconBrush size={15} />
                <Slider
                  size="sm"
                  w={96}
                  min={2}
                  max={Math.max(120, size)}
                  value={size}
                  onChange={(size) => dispatch({ type: "size", size })}
                  label={(value) => `${value} px`}
                  thumbLabel={t("size")}
                />
              </div>
            </Tooltip>
            {!inline && (
              <>
                <Tooltip label={t("opacity")}>
                  <div className={classes.slider}>
                    <IconPalette size={15} />
                    <Slider
                      size="sm"
                      w={72}
                      min={0.15}
                      max={1}
                      step={0.05}
                      value={opacity}
                      onChange={(opacity) => dispatch({ type: "opacity", opacity })}
                      label={(value) => `${Math.round(value * 100)} %`}
                      thumbLabel={t("opacity")}
                    />
                  </div>
                </Tooltip>
                <div role="radiogroup" aria-label={t("colour")} className={classes.colours}>
                  {(Object.keys(COLOURS) as Colour[]).map((name) => (
                    <button
                      key={name}
                      type="button"
                      role="radio"
                      aria-checked={colour === name}
                      aria-label={t(name)}
                      data-colour={name}
                      onClick={() => dispatch({ type: "colour", colour: name })}
                    />
                  ))}
                </div>
                <Divider orientation="vertical" />
                <FileButton onChange={(file) => void load(file)} accept="image/png,image/jpeg,image/webp">
                  {(props) => <IconButton label={t("load")} icon={IconFolderOpen} {...props} />}
                </FileButton>
                <IconButton
                  label={t("save")}
                  icon={IconDeviceFloppy}
                  disabled={!history.done.length}
                  onClick={() => void save()}
                />
              </>
            )}
          </>
        )}
        <Divider orientation="vertical" />
        <IconButton label={t("zoomOut")} icon={IconZoomOut} onClick={() => nearer(0.8)} />
        <Text size="xs" c="dimmed" w={44} ta="center" className="figures">
          {Math.round(view.scale * 100)} %
        </Text>
        <IconButton label={t("zoomIn")} icon={IconZoomIn} onClick={() => nearer(1.25)} />
        <IconButton label={t("fit")} icon={IconFocusCentered} onClick={() => dispatch({ type: "fit" })} />
        <IconButton
          label={onEnlarge ? t("enlarge") : t("fullScreen")}
          icon={IconMaximize}
          onClick={onEnlarge ?? fullScreen}
        />
      </Group>
      {extra && <div className={classes.extra}>{extra}</div>}
      <div
        ref={frame}
        className={classes.frame}
        data-panning={pointers.isPanning || undefined}
        data-tool={tool}
        style={
          inline
            ? { aspectRatio: `${width} / ${height}`, maxHeight: `${MAX_INLINE_VH}vh`, minHeight: "16rem" }
            : undefined
        }
        role="application"
        aria-label={t("canvas")}
        aria-describedby={described}
        // biome-ignore lint/a11y/noNoninteractiveTabindex: boxes are drawn with the keyboard here
        tabIndex={0}
        data-testid="mask-canvas"
        onKeyDown={keyboard.onKeyDown}
        {...pointers.handlers}
      >
        <div
          className={classes.stage}
          style={{ width, height, transform: `translate(${view.x}px, ${view.y}px) scale(${view.scale})` }}
        >
          <img src={picture} alt="" width={width} height={height} draggable={false} />
          <canvas
            ref={canvas}
            width={Math.round(width * factor)}
            height={Math.round(height * factor)}
            style={{ opacity }}
          />
          <svg viewBox={`0 0 ${width} ${height}`} aria-hidden="true">
            {regions?.map(({ id, box: [x, y, w, h], on }) => (
              <rect key={`region${id}`} x={x} y={y} width={w} height={h} data-kind="region" data-on={on || undefined} />
            ))}
            {boxes.map((stroke) => {
              const [x, y, w, h] = stroke.box;
              return (
                <rect key={`${stroke.kind}${stroke.box}`} x={x} y={y} width={w} height={h} data-kind={stroke.kind} />
              );
            })}
            {drawn && (
              <rect
                x={drawn[0]}
                y={drawn[1]}
                width={drawn[2]}
                height={drawn[3]}
                data-kind={tool === "keep" ? "keep" : "box"}
                data-pending
              />
            )}
          </svg>
        </div>
        {pointers.hover && (tool === "brush" || tool === "eraser") && !pointers.isPanning && (
          <div
            className={classes.cursor}
            style={{
              width: size * view.scale,
              height: size * view.scale,
              transform: `translate(${pointers.hover.x - (size * view.scale) / 2}px, ${pointers.hover.y - (size * view.scale) / 2}px)`,
            }}
          />
        )}
      </div>
      <VisuallyHidden role="status">
        {keyboard.box
          ? t("boxAt", {
              left: keyboard.box[0],
              top: keyboard.box[1],
              width: keyboard.box[2],
              height: keyboard.box[3],
            })
          : boxes.length > 0 && t("boxes", { n: boxes.length })}
      </VisuallyHidden>
      <VisuallyHidden id={described}>{t("byKeyboard")}</VisuallyHidden>
      {!inline && (
        <Group justify="space-between" className={classes.foot}>
          <Text size="xs" c="dimmed" className={classes.hint}>
            {boxesOnly ? t("hintBoxes") : t("hint")}{" "}
            <span className={classes.keys}>{boxesOnly ? t("keysBoxes") : t("keys")}</span>
          </Text>
          <Group gap="xs">
            <Button variant="default" onClick={onCancel}>
              {common("cancel")}
            </Button>
            <Button onClick={() => onUse({ width, height, strokes: history.done })}>{useLabel ?? t("use")}</Button>
          </Group>
        </Group>
      )}
    </div>
  );
}

function IconButton({
  label,
  icon: Drawn,
  ...props
}: {
  label: string;
  icon: Icon;
  disabled?: boolean;
  onClick: () => void;
}) {
  return (
    <Tooltip label={label}>
      <ActionIcon size="lg" variant="subtle" color="gray" aria-label={label} {...props}>
        <Drawn />
      </ActionIcon>
    </Tooltip>
  );
}
