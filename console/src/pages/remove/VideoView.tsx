import { ActionIcon, Group, Slider, Text, Tooltip } from "@mantine/core";
import { type ReactNode, useCallback, useEffect, useMemo, useRef, useState } from "react";
import {
  type Icon,
  IconChevronLeft,
  IconChevronRight,
  IconPlayerPause,
  IconPlayerPlay,
  Loading,
} from "../../components";
import { useText } from "../../i18n";
import { CompareSlider } from "./CompareSlider";
import { frameAt } from "./frames";
import type { Size } from "./media";
import { removalTexts } from "./remove.texts";

const APART_S = 0.06; // from which on the two are put together again while they play

interface Props {
  readonly before: string;
  readonly after: string;
  /** How long one frame lasts. */
  readonly frame: number;
  /** Shown where the browser plays neither. */
  readonly other: ReactNode;
  /** What was found, in pixels of a frame. */
  readonly boxes: readonly (readonly number[])[];
}

/** Two films on top of each other that run together: the line between them is dragged as with pictures. */
export function VideoView({ before, after, frame, other, boxes }: Props) {
  const t = useText(removalTexts);
  const first = useRef<HTMLVideoElement>(null);
  const second = useRef<HTMLVideoElement>(null);
  const [size, setSize] = useState<Size | null>(null);
  const [length, setLength] = useState(0);
  const [at, setAt] = useState(0);
  const [playing, setPlaying] = useState(false);
  const [unplayable, setUnplayable] = useState(false);

  const seek = useCallback((to: number) => {
    for (const each of [first.current, second.current]) {
      if (each) each.currentTime = Math.min(Math.max(0, to), each.duration || to);
    }
    setAt(to);
  }, []);
  /** Show the frame before or after this one: the clip stands still then. */
  const step = (count: number) => {
    first.current?.pause();
    second.current?.pause();
    seek(frameAt(second.current?.currentTime ?? at, count, frame, length));
  };
  const toggle = () => {
    const [original, clean] = [first.current, second.current];
    if (!original || !clean) return;
    if (clean.paused) {
      original.currentTime = clean.currentTime;
      void clean.play().catch(() => setUnplayable(true));
      void original.play().catch(() => {});
    } else {
      clean.pause();
      original.pause();
    }
  };
  useEffect(() => {
    if (!playing) return;
    let request = 0;
    const follow = () => {
      const [original, clean] = [first.current, second.current];
      if (original && clean) {
        setAt(clean.currentTime);
        if (Math.abs(original.currentTime - clean.currentTime) > APART_S) original.currentTime = clean.currentTime;
      }
      request = requestAnimationFrame(follow);
    };
    request = requestAnimationFrame(follow);
    return () => cancelAnimationFrame(request);
  }, [playing]);
  const whole = useMemo(() => size ?? { width: 16, height: 9 }, [size]);
  if (unplayable) return other;
  return (
    <>
      {size === null && <Loading />}
      <div hidden={size === null}>
        <CompareSlider
          before={
            <video
              ref={first}
              src={before}
              muted
              playsInline
              preload="auto"
              aria-label={t("before")}
              onError={() => setUnplayable(true)}
            />
          }
          after={
            // biome-ignore lint/a11y/useMediaCaption: captions are not available
            <video
              ref={second}
              src={after}
              playsInline
              preload="auto"
              aria-label={t("after")}
              onError={() => setUnplayable(true)}
              onLoadedMetadata={({ currentTarget: film }) => {
                setSize({ width: film.videoWidth || 16, height: film.videoHeight || 9 });
                setLength(film.duration || 0);
              }}
              onPlay={() => setPlaying(true)}
              onPause={() => setPlaying(false)}
              onEnded={() => first.current?.pause()}
            />
          }
          size={whole}
          boxes={size === null ? [] : boxes}
        />
        <Group gap={6} wrap="nowrap" mt="xs">
          <Button
            label={playing ? t("pause") : t("play")}
            icon={playing ? IconPlayerPause : IconPlayerPlay}
            onClick={toggle}
          />
          <Button label={t("frameBack")} icon={IconChevronLeft} onClick={() => step(-1)} />
          <Button label={t("frameOn")} icon={IconChevronRight} onClick={() => step(1)} />
          <Slider
            flex={1}
            min={0}
            max={length || 1}
            step={frame}
            value={at}
            label={null}
            thumbLabel={t("moment")}
            onChange={seek}
          />
          <Text size="xs" c="dimmed" className="figures" style={{ whiteSpace: "nowrap" }}>
            {clock(at)} / {clock(length)}
          </Text>
        </Group>
      </div>
    </>
  );
}

/** 75.4 as "1:15.4". */
export function clock(seconds: number): string {
  const tenths = Math.round(seconds * 10);
  const rest = tenths % 600;
  return `${Math.floor(tenths / 600)}:${`${Math.floor(rest / 10)}`.padStart(2, "0")}.${rest % 10}`;
}

function Button({ label, icon: Drawn, onClick }: { label: string; icon: Icon; onClick: () => void }) {
  return (
    <Tooltip label={label}>
      <ActionIcon variant="default" size="lg" aria-label={label} onClick={onClick}>
        <Drawn />
      </ActionIcon>
    </Tooltip>
  );
}
