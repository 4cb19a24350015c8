import { Button, Checkbox, Loader, Skeleton, Text } from "@mantine/core";
import { useWindowVirtualizer } from "@tanstack/react-virtual";
import { memo, type ReactNode, useEffect, useLayoutEffect, useMemo, useRef, useState } from "react";
import { Link } from "react-router";
import type { Listing } from "../api";
import { useText } from "../i18n";
import classes from "./CursorTable.module.css";
import { commonTexts } from "./components.texts";
import { isKept, layoutFor, TRACK } from "./layout";
import { ProblemAlert } from "./ProblemAlert";

export interface Column<T> {
  readonly key: string;
  readonly header: string;
  readonly cell: (row: T) => ReactNode;
  /** A track of CSS grid, in rem: "12rem", "minmax(8rem, 1fr)". */
  readonly width?: string;
  readonly align?: "start" | "end";
  /** On a phone a row is a card: its first line, one of its facts, or not shown, as where the columns have no room. */
  readonly phone?: "title" | "fact" | "hidden";
}

interface Selection {
  readonly chosen: ReadonlySet<string>;
  readonly onChange: (chosen: ReadonlySet<string>) => void;
}

interface Props<T> {
  readonly label: string;
  readonly listing: Listing<T>;
  readonly columns: readonly Column<T>[];
  readonly rowKey: (row: T) => string;
  readonly href?: (row: T) => string;
  readonly onOpen?: (row: T) => void;
  readonly empty: ReactNode;
  readonly selection?: Selection;
}

/** A list that stays quick with a hundred thousand rows: only those in sight are drawn, and pages come by cursor. */
export function CursorTable<T>({ label, listing, columns, rowKey, href, onOpen, empty, selection }: Props<T>) {
  const t = useText(commonTexts);
  const frame = useRef<HTMLDivElement>(null);
  const [offset, setOffset] = useState(0);
  const [width, setWidth] = useState(window.innerWidth);
  useLayoutEffect(() => {
    const measure = () => {
      setOffset(frame.current ? frame.current.getBoundingClientRect().top + window.scrollY : 0);
      setWidth((before) => frame.current?.clientWidth ?? before);
    };
    measure();
    const observer = new ResizeObserver(measure);
    observer.observe(document.body);
    return () => observer.disconnect();
  }, []);
  const room = width / Number.parseFloat(getComputedStyle(document.documentElement).fontSize);
  const layout = layoutFor(columns, room, selection !== undefined);
  const isCards = layout === "cards";
  const shown = useMemo(() => (layout === "all" ? columns : columns.filter(isKept)), [columns, layout]);
  const { items, hasMore, isLoadingMore, moreError, loadMore } = listing;
  const virtual = useWindowVirtualizer({
    count: items.length,
    estimateSize: () => (isCards ? 104 : 37),
    overscan: 8,
    scrollMargin: offset,
    getItemKey: (index) => rowKey(items[index] as T),
  });
  const rows = virtual.getVirtualItems();
  const lastSeen = rows.at(-1)?.index ?? -1;
  useEffect(() => {
    if (hasMore && !isLoadingMore && moreError === null && lastSeen >= items.length - 10) loadMore();
  }, [hasMore, isLoadingMore, moreError, lastSeen, items.length, loadMore]);

  if (listing.error) return <ProblemAlert error={listing.error} onRetry={listing.reload} />;
  if (!listing.isLoading && !hasMore && items.length === 0) return <div className={classes.frame}>{empty}</div>;

  const tracks = [...(selection ? ["2.25rem"] : []), ...shown.map((column) => column.width ?? TRACK)];
  const template = tracks.join(" ");
  const toggle = (key: string) => {
    const next = new Set(selection?.chosen);
    if (!next.delete(key)) next.add(key);
    selection?.onChange(next);
  };
  const allChosen =
    selection !== undefined && items.length > 0 && items.every((row) => selection.chosen.has(rowKey(row)));
  const showNewer = () => {
    listing.reload();
    window.scrollTo({ top: 0 });
  };
  return (
    <>
      {listing.isBehind && (
        <div className={classes.newer} role="status">
          <Button size="compact-sm" onClick={showNewer}>
            {t("showNewer")}
          </Button>
        </div>
      )}
      <div className={classes.frame} role="table" aria-label={label} aria-rowcount={hasMore ? -1 : items.length + 1}>
        {!isCards && (
          <div className={classes.head} role="row" style={{ gridTemplateColumns: template }}>
            {selection && (
              <div role="columnheader">
                <Checkbox
                  size="xs"
                  aria-label={t("selectAll")}
                  checked={allChosen}
                  indeterminate={!allChosen && selection.chosen.size > 0}
                  onChange={() => selection.onChange(new Set(allChosen ? [] : items.map(rowKey)))}
                />
              </div>
            )}
            {shown.map((column) => (
              <div key={column.key} role="columnheader" data-align={column.align}>
                {column.header || <span className="only-screen-reader">{t("actions")}</span>}
              </div>
            ))}
          </div>
        )}
        {(listing.isLoading || (items.length === 0 && hasMore)) && <Placeholder />}
        <div ref={frame} role="rowgroup" className={classes.rows} style={{ height: virtual.getTotalSize() }}>
          {rows.map((row) => {
            const item = items[row.index] as T;
            const key = rowKey(item);
            return (
              <div
                key={row.key}
                ref={virtual.measureElement}
                data-index={row.index}
                className={isCards ? classes.card : classes.row}
                data-opens={href || onOpen ? true : undefined}
                role="row"
                aria-rowindex={row.index + 2}
                style={{
                  transform: `translateY(${row.start - offset}px)`,
                  ...(isCards ? {} : { gridTemplateColumns: template }),
                }}
              >
                {selection && (
                  <div role="cell" className={classes.check}>
                    <input
                      type="checkbox"
                      aria-label={`${t("select")} ${key}`}
                      checked={selection.chosen.has(key)}
                      onChange={() => toggle(key)}
                    />
                  </div>
                )}
                <Cells item={item} columns={shown} isCard={isCards} href={href} onOpen={onOpen} />
              </div>
            );
          })}
        </div>
        {moreError !== null && <ProblemAlert error={moreError} onRetry={loadMore} />}
        {isLoadingMore && (
          <div className={classes.foot}>
            <Loader size="xs" aria-label={t("loading")} />
          </div>
        )}
        {!hasMore && items.length > 50 && (
          <Text size="xs" c="dimmed" className={classes.foot}>
            {t("endOfList")}
          </Text>
        )}
      </div>
    </>
  );
}

interface CellsProps<T> {
  readonly item: T;
  readonly columns: readonly Column<T>[];
  readonly isCard: boolean;
  readonly href: ((row: T) => string) | undefined;
  readonly onOpen: ((row: T) => void) | undefined;
}

/** The cells of a row. They are not rendered again while scrolling. */
const Cells = memo(function Cells<T>({ item, columns, isCard, href, onOpen }: CellsProps<T>) {
  return columns.map((column, index) => (
    <div
      key={column.key}
      role="cell"
      data-align={column.align}
      data-phone={isCard ? (column.phone ?? "fact") : undefined}
    >
      {isCard && column.phone !== "title" && column.header && <span className={classes.factName}>{column.header}</span>}
      {index === 0 && (href || onOpen) ? (
        <Opener item={item} href={href} onOpen={onOpen}>
          {column.cell(item)}
        </Opener>
      ) : (
        column.cell(item)
      )}
    </div>
  ));
}) as <T>(props: CellsProps<T>) => ReactNode;

/** The first cell is the link; its area covers the row, so that a click anywhere opens it. */
function Opener<T>({
  item,
  href,
  onOpen,
  children,
}: {
  item: T;
  href: ((row: T) => string) | undefined;
  onOpen: ((row: T) => void) | undefined;
  children: ReactNode;
}) {
  return href ? (
    <Link to={href(item)} className={classes.opener}>
      {children}
    </Link>
  ) : (
    <button type="button" className={classes.opener} onClick={() => onOpen?.(item)}>
      {children}
    </button>
  );
}

function Placeholder() {
  return (
    <div className={classes.placeholder} aria-hidden="true">
      {[70, 55, 80, 62].map((width) => (
        <Skeleton key={width} height={14} width={`${width}%`} radius="sm" />
      ))}
    </div>
  );
}
