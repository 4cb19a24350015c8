import { ActionIcon, Button, Group, Stack, Text, Title } from "@mantine/core";
import { useQuery } from "@tanstack/react-query";
import { type AssetOut, api, data, keys } from "../../api";
import { IconPlus, IconTrash, Time, useAct, useConfirm } from "../../components";
import { formats, useText } from "../../i18n";
import { addAsset, useDraft } from "./draft";
import classes from "./Files.module.css";
import { previewUrl } from "./media";
import { removeTexts } from "./remove.texts";
import { Thumbnail } from "./Thumbnail";

const SHOWN = 6;

/** Uploads without an order, perhaps of another browser: to continue, or to delete. */
export function NotOrdered() {
  const t = useText(removeTexts);
  const confirm = useConfirm();
  const { files } = useDraft();
  const key = keys.assets.notOrdered;
  const { act } = useAct(key);
  const found = useQuery({ queryKey: key, queryFn: () => data(api.GET("/v1/removals/not-ordered")) });
  const here = new Set(files.map((file) => file.asset?.id));
  const left = (found.data?.items ?? []).filter((asset) => !here.has(asset.id)).slice(0, SHOWN);
  if (left.length === 0) return null;
  const remove = async (asset: AssetOut) => {
    const question = { title: t("deleteTitle", { name: asset.name }), body: t("deleteText"), action: t("deleteOne") };
    if (!(await confirm({ ...question, danger: true }))) return;
    await act(() => api.DELETE("/v1/assets/{asset_id}", { params: { path: { asset_id: asset.id } } }));
  };
  return (
    <section data-testid="not-ordered">
      <Title order={2} mb={4}>
        {t("notOrdered")}
      </Title>
      <Text size="sm" c="dimmed" mb="sm">
        {t("notOrderedText")}
      </Text>
      <Stack gap="xs">
        {left.map((asset) => (
          <div key={asset.id} className={classes.card}>
            <Group wrap="nowrap" gap="md">
              <Thumbnail src={previewUrl(asset.id)} kind={asset.media_type} size={44} />
              <div className={classes.middle}>
                <Text fw={600} size="sm" className={classes.name}>
                  {asset.name}
                </Text>
                <Text size="xs" c="dimmed">
                  {formats.bytes(asset.size_bytes)} · <Time at={asset.created_at} />
                </Text>
              </div>
              <Button size="xs" variant="light" leftSection={<IconPlus size={14} />} onClick={() => addAsset(asset)}>
                {t("goOn")}
              </Button>
              <ActionIcon
                variant="subtle"
                color="gray"
                aria-label={t("deleteNamed", { name: asset.name })}
                onClick={() => void remove(asset)}
              >
                <IconTrash size={16} />
              </ActionIcon>
            </Group>
          </div>
        ))}
      </Stack>
    </section>
  );
}
