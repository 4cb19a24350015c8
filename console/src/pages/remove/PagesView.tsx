import { ActionIcon, Group, NumberInput, Text } from "@mantine/core";
import { useQuery } from "@tanstack/react-query";
import { type ReactNode, useEffect, useState } from "react";
import { api, data, keys, type RemovalOut, type ResultOut } from "../../api";
import { Empty, IconChevronLeft, IconChevronRight, Loading } from "../../components";
import { useText } from "../../i18n";
import { CompareSlider } from "./CompareSlider";
import { metaOf, pageUrl, resultPageUrl, sizeOf } from "./media";
import { useNaturalSize } from "./ResultView";
import { removalTexts } from "./remove.texts";
import { shownAsFound } from "./suspects";

/** The pages of a document before and after, one at a time; it opens where something was taken off. */
export function PagesView({
  removal,
  result,
  otherwise,
}: {
  removal: RemovalOut;
  result: ResultOut;
  /** What is said where no page can be drawn. */
  otherwise: ReactNode;
}) {
  const t = useText(removalTexts);
  const [drawn, setDrawn] = useState(false); // any of them
  const asset = useQuery({
    queryKey: keys.assets.one(removal.asset_id),
    queryFn: () => data(api.GET("/v1/assets/{asset_id}", { params: { path: { asset_id: removal.asset_id } } })),
  });
  const found = shownAsFound(removal.candidates);
  const [page, setPage] = useState(() => found.flatMap((each) => each.pages ?? []).sort((a, b) => a - b)[0] ?? 1);
  const after = resultPageUrl(removal.id, page);
  const size = useNaturalSize(after);
  const resultPages = (result.metrics as { pages?: number } | null)?.pages;
  const pages = (asset.data && metaOf(asset.data).pages) ?? resultPages ?? 1;
  useEffect(() => {
    // The next one is drawn while this one is looked at.
    if (page < pages)
      for (const url of [pageUrl(removal.asset_id, page + 1), resultPageUrl(removal.id, page + 1)])
        new Image().src = url;
  }, [page, pages, removal.asset_id, removal.id]);
  useEffect(() => {
    if (size !== null && size !== "none") setDrawn(true);
  }, [size]);
  const picker = pages > 1 && <PagePicker page={page} pages={pages} onChange={setPage} />;
  if (size === null) return <Loading />;
  if (size === "none") {
    return (
      <>
        {drawn ? <Empty title={t("noPage")} /> : otherwise}
        {drawn && picker}
      </>
    );
  }
  const points = asset.data ? sizeOf(asset.data) : null;
  const scale = points ? size.width / points.width : 0;
  // Boxes are in points of the first page: on a page of another shape they would be elsewhere.
  const fits = points !== null && Math.abs(size.height / size.width - points.height / points.width) < 0.01;
  const boxes = found.filter((each) => fits && (!each.pages?.length || each.pages.includes(page)));
  return (
    <>
      <CompareSlider
        // The original may be gone by now; the result is not.
        before={<img src={pageUrl(removal.asset_id, page)} alt={t("before")} draggable={false} />}
        after={<img src={after} alt={t("after")} draggable={false} />}
        size={size}
        boxes={boxes.map(({ box }) => box.map((value) => value * scale))}
      />
      {picker}
    </>
  );
}

/** Which page is looked at: one on, one back, or by its number. */
export function PagePicker({
  page,
  pages,
  onChange,
}: {
  page: number;
  pages: number;
  onChange: (page: number) => void;
}) {
  const t = useText(removalTexts);
  const go = (to: number) => onChange(Math.min(pages, Math.max(1, to)));
  return (
    <Group gap={6} justify="center" mt="xs" wrap="nowrap" role="group" aria-label={t("page")}>
      <ActionIcon
        variant="default"
        size="lg"
        aria-label={t("pageBack")}
        disabled={page <= 1}
        onClick={() => go(page - 1)}
      >
        <IconChevronLeft />
      </ActionIcon>
      <NumberInput
        w={72}
        size="sm"
        min={1}
        max={pages}
        value={page}
        aria-label={t("page")}
        hideControls
        styles={{ input: { textAlign: "center" } }}
        onChange={(value) => typeof value === "number" && value >= 1 && value <= pages && onChange(Math.trunc(value))}
      />
      <Text size="sm" c="dimmed">
        {t("ofPages", { n: pages })}
      </Text>
      <ActionIcon
        variant="default"
        size="lg"
        aria-label={t("pageOn")}
        disabled={page >= pages}
        onClick={() => go(page + 1)}
      >
        <IconChevronRight />
      </ActionIcon>
    </Group>
  );
}
