import { Button } from "@mantine/core";
import { api, data, keys, type LockOut, useListing } from "../../api";
import {
  type Column,
  CursorTable,
  IconLock,
  Id,
  NoRows,
  Page,
  StateBadge,
  Time,
  useAct,
  useConfirm,
  useFilters,
} from "../../components";
import { useText } from "../../i18n";
import { pollEvery } from "../live/useChanges";
import { AUDITED_EVERY_MS } from "../parts/audited";
import { FilterBar, SelectFilter, TextFilter } from "../parts/FilterBar";
import { partTexts } from "../parts/parts.texts";
import { TitleCell } from "../parts/TitleCell";
import { Views } from "../parts/Views";
import { lockTexts } from "./locks.texts";

type LockStatus = LockOut["status"];

const DEFAULTS = { status: "ACTIVE", key: "", holder: "" };
const STATES: readonly LockStatus[] = ["ACTIVE", "EXPIRED", "RELEASED"];

/** Who holds which name, and until when. */
export default function LocksPage() {
  const t = useText(lockTexts);
  const part = useText(partTexts);
  const confirm = useConfirm();
  const { act } = useAct(keys.locks.all);
  const filters = useFilters(DEFAULTS);
  const { values, set } = filters;
  const listing = useListing<LockOut>(
    keys.locks.list(values),
    (cursor) => {
      const { status, ...rest } = filters.query;
      const asked = { ...rest, status: status as LockStatus | undefined, user_id: "*", limit: 50, cursor };
      return data(api.GET("/v1/locks", { params: { query: asked } }));
    },
    { refetchInterval: pollEvery(AUDITED_EVERY_MS) },
  );
  const release = async (lock: LockOut) => {
    const { key } = lock;
    const yes = await confirm({
      title: t("askRelease", { key }),
      body: t("releaseText"),
      action: t("release"),
      danger: true,
    });
    const body = { key, user_id: lock.user_id };
    if (yes) await act(() => data(api.POST("/v1/locks/force-release", { body })), t("released", { key }));
  };
  const columns: Column<LockOut>[] = [
    {
      key: "key",
      header: t("key"),
      width: "minmax(8rem, 1.5fr)",
      phone: "title",
      cell: (lock) => <TitleCell title={lock.key} facts={lock.purpose} />,
    },
    {
      key: "state",
      header: part("state"),
      width: "7rem",
      cell: (lock) => <StateBadge state={lock.status} label={t(lock.status)} />,
    },
    { key: "holder", header: t("holder"), width: "minmax(6rem, 1fr)", cell: (lock) => <Id id={lock.holder} /> },
    { key: "fence", header: t("fence"), width: "4rem", align: "end", cell: (lock) => lock.fence, phone: "hidden" },
    { key: "acquired", header: t("acquired"), width: "7.5rem", cell: (lock) => <Time at={lock.acquired_at} /> },
    {
      key: "expires",
      header: t("expires"),
      width: "7.5rem",
      cell: (lock) => <Time at={lock.released_at ?? lock.expires_at} />,
    },
    {
      key: "actions",
      header: "",
      width: "9.5rem",
      align: "end",
      cell: (lock) =>
        lock.status === "ACTIVE" && (
          <Button size="compact-sm" variant="default" onClick={() => void release(lock)}>
            {t("release")}
          </Button>
        ),
    },
  ];
  return (
    <Page title={t("title")} text={t("text")}>
      <FilterBar active={filters.active} onClear={filters.clear} onReload={listing.reload} actions={<Views />}>
        <SelectFilter
          label={part("state")}
          value={values.status}
          onChange={(status) => set({ status })}
          choices={STATES.map((value) => ({ value, label: t(value) }))}
        />
        <TextFilter label={t("key")} value={values.key} onChange={(key) => set({ key })} />
        <TextFilter label={t("holder")} value={values.holder} onChange={(holder) => set({ holder })} />
      </FilterBar>
      <CursorTable
        label={t("title")}
        listing={listing}
        columns={columns}
        rowKey={(lock) => `${lock.user_id} ${lock.key} ${lock.fence}`}
        empty={<NoRows filtered={filters.active} icon={IconLock} title={t("none")} text={t("noneText")} />}
      />
    </Page>
  );
}
