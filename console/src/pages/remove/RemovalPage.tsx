import { Button, Group, Modal, Stack, Text } from "@mantine/core";
import { useQuery } from "@tanstack/react-query";
import { lazy, Suspense, useEffect, useRef, useState } from "react";
import { Link, useLocation, useNavigate, useParams } from "react-router";
import { api, data, keys, type RemovalOut, type TaskStatus } from "../../api";
import {
  announce,
  commonTexts,
  Empty,
  IconBrush,
  IconCheck,
  IconDownload,
  IconPlayerStop,
  IconWand,
  Loading,
  Page,
  Panel,
  ProblemAlert,
  useAct,
  useConfirm,
} from "../../components";
import { useText } from "../../i18n";
import { useReadWith } from "../../live/notifications";
import { isOver, useLiveTask } from "../../live/task";
import { BatchWalk } from "./BatchWalk";
import { CandidateList } from "./CandidateList";
import { Columns } from "./Columns";
import { Failure } from "./Failure";
import { MarkedPicture } from "./MarkedPicture";
import { download, sizeOf } from "./media";
import {
  Details,
  RemovalBadge,
  ResultFacts,
  ReturnResult,
  SameAsBefore,
  useVerdict,
  VERDICTS,
  Verdict,
} from "./Outcome";
import { drawingBefore, orderAgain } from "./order";
import { usePrice } from "./Price";
import { ProgressPanel } from "./ProgressPanel";
import { ResultView, useResult } from "./ResultView";
import { removalTexts, removeTexts } from "./remove.texts";
import { useSuccessor } from "./successor";

const EditorDialog = lazy(() => import("./EditorDialog"));

/** One removal: how far it is, what became of it, and what to do about it. */
export default function RemovalPage() {
  const { taskId = "" } = useParams();
  return <Removal key={taskId} taskId={taskId} />;
}

function Removal({ taskId }: { taskId: string }) {
  const t = useText(removalTexts);
  const confirm = useConfirm();
  const { act } = useAct();
  const task = useLiveTask(taskId);
  const status = task.data?.status;
  const removal = useQuery({
    queryKey: keys.removals.one(taskId, status && isOver(status)),
    queryFn: () => data(api.GET("/v1/removals/{task_id}", { params: { path: { task_id: taskId } } })),
    placeholderData: (before: RemovalOut | undefined) => before,
  });
  const again = useAgain(removal.data, task.data?.payload);
  useAnnouncedEnd(removal.data, status);
  useReadWith([taskId], removal.data?.batch_id, removal.data !== undefined && isOver(removal.data.status));
  const error = removal.error ?? task.error;
  if (error) {
    return (
      <Page title={t("file")}>
        <ProblemAlert error={error} onRetry={() => void removal.refetch()} />
      </Page>
    );
  }
  // The task is over before what became of it is read: until then there is nothing to say about it.
  if (!removal.data || !task.data || (isOver(task.data.status) && !isOver(removal.data.status))) return <Loading />;
  const stop = async () => {
    if (!(await confirm({ title: t("cancelTitle"), body: t("cancelText"), action: t("cancel"), danger: true }))) return;
    // Whatever its version is by now: that moves with every step it makes.
    await act(() => api.POST("/v1/tasks/{task_id}/cancel", { params: { path: { task_id: taskId } } }));
    void task.refetch();
  };
  return (
    <Page
      title={removal.data.asset_name ?? taskId}
      text={
        <Group gap="sm">
          {/* Of a result the verdict says more. */}
          {task.data.status !== "SUCCEEDED" && <RemovalBadge removal={{ ...removal.data, status: task.data.status }} />}
          <BatchWalk taskId={taskId} />
        </Group>
      }
      actions={
        <>
          {!isOver(task.data.status) && (
            <Button variant="default" leftSection={<IconPlayerStop size={16} />} onClick={() => void stop()}>
              {t("cancel")}
            </Button>
          )}
          <Button component={Link} to="/remove" variant="default" leftSection={<IconWand size={16} />}>
            {t("another")}
          </Button>
          {task.data.status === "SUCCEEDED" && (
            <Button leftSection={<IconDownload size={16} />} onClick={() => download(taskId)}>
              {t("download")}
            </Button>
          )}
        </>
      }
    >
      {!isOver(task.data.status) && (
        <>
          <ProgressPanel task={task.data} />
          <Panel>
            <MarkedPicture removal={removal.data} chosen={[]} />
          </Panel>
        </>
      )}
      {task.data.status === "SUCCEEDED" && <Success removal={removal.data} again={again} />}
      {task.data.status === "FAILED" && <Unresolved removal={removal.data} again={again} />}
      {task.data.status === "CANCELED" && (
        <Panel>
          <Empty
            icon={IconPlayerStop}
            title={t("canceled")}
            action={
              <Button variant="light" loading={again.busy} onClick={() => again.run({})}>
                {t("again")}
              </Button>
            }
          />
        </Panel>
      )}
      {again.editor}
    </Page>
  );
}

/** Says the end of a removal that was seen under way, for those who do not see it. */
function useAnnouncedEnd(removal: RemovalOut | undefined, status: string | undefined): void {
  const t = useText(removalTexts);
  const open = useRef(false);
  const over = removal !== undefined && isOver(removal.status);
  const metrics = useResult(removal?.id ?? "", over && removal.status === "SUCCEEDED").data?.metrics as {
    verdict?: "CLEAN" | "LOOK" | "POOR";
  } | null;
  useEffect(() => {
    if (status !== undefined && !isOver(status as TaskStatus)) open.current = true;
    if (!open.current || !over || removal === undefined) return;
    if (removal.status === "SUCCEEDED" && metrics === undefined) return; // the verdict is on its way
    open.current = false;
    if (removal.status !== "SUCCEEDED") announce(t("resultFailed"));
    else if (!metrics?.verdict) announce(t("resultReady"));
    else announce(`${t("resultReady")} ${t(VERDICTS[metrics.verdict])}`);
  }, [status, over, removal, metrics, t]);
}

/** A failure is closed once a later order of the same file has succeeded: nothing is offered, and charged, twice. */
function Unresolved({ removal, again }: { removal: RemovalOut; again: Again }) {
  const t = useText(removalTexts);
  const later = useSuccessor(removal);
  if (later.isPending) return <Loading />;
  if (!later.data) return <Failure removal={removal} again={again} />;
  return (
    <Panel>
      <Empty
        icon={IconCheck}
        title={t("closedTitle")}
        action={
          <Button component={Link} to={`/remove/${later.data.id}`}>
            {t("openResult")}
          </Button>
        }
      />
    </Panel>
  );
}

function Success({ removal, again }: { removal: RemovalOut; again: Again }) {
  const t = useText(removalTexts);
  const verdict = useVerdict(removal);
  const moving = ["IMAGE", "VIDEO"].includes(removal.media_type);
  return (
    <Columns aside="20rem">
      <Stack>
        <SameAsBefore removal={removal} />
        <Panel>
          <ResultView removal={removal} />
        </Panel>
      </Stack>
      <Stack>
        <Verdict removal={removal}>
          <Button variant="light" fullWidth leftSection={<IconBrush size={16} />} onClick={again.draw}>
            {t("notRight")}
          </Button>
          {verdict !== "CLEAN" && removal.quality === "STANDARD" && moving && (
            <HighAgain removal={removal} again={again} />
          )}
          <ReturnResult removal={removal} />
        </Verdict>
        <ResultFacts removal={removal} />
        <Details removal={removal} />
      </Stack>
    </Columns>
  );
}

/** The same in high quality is another order: it says what it costs. */
function HighAgain({ removal, again }: { removal: RemovalOut; again: Again }) {
  const t = useText(removalTexts);
  const words = useText(removeTexts);
  const price = usePrice([removal.asset_id], "HIGH").data;
  return (
    <>
      <Button
        variant="subtle"
        fullWidth
        loading={again.busy}
        disabled={price !== undefined && !price.enough}
        onClick={() => again.run({ quality: "HIGH" })}
      >
        {t("highAgain")}
        {price && ` · ${words("units", { n: price.units })}`}
      </Button>
      <Text size="xs" c="dimmed" ta="center">
        {t("onlyIfBetter")}
      </Text>
    </>
  );
}

export interface Again {
  readonly busy: boolean;
  /** Open the editor with what was found, and order what is drawn there. */
  readonly draw: () => void;
  readonly run: (how: Partial<Parameters<typeof orderAgain>[2]>) => void;
}

/** Doing the same file once more, in another way; the same right is declared for it. */
function useAgain(removal: RemovalOut | undefined, payload: unknown): Again & { editor: React.ReactNode } {
  const t = useText(removalTexts);
  const words = useText(removeTexts);
  const navigate = useNavigate();
  const { search } = useLocation(); // of a walk through a batch
  const { busy, act } = useAct(keys.removals.all);
  const [drawing, setDrawing] = useState(false);
  const price = usePrice(drawing && removal ? [removal.asset_id] : [], removal?.quality ?? "STANDARD").data;
  const asset = useQuery({
    queryKey: keys.assets.one(removal?.asset_id),
    queryFn: () => data(api.GET("/v1/assets/{asset_id}", { params: { path: { asset_id: removal?.asset_id ?? "" } } })),
    enabled: removal !== undefined,
  });
  const run: Again["run"] = async (how) => {
    if (!removal) return;
    await act(async () => {
      const found = asset.data ?? (await asset.refetch({ throwOnError: true })).data;
      if (!found) return;
      const same = { basis: removal.rights_basis, quality: removal.quality };
      const taskId = await orderAgain(found, payload, { ...same, ...how });
      setDrawing(false);
      void navigate(`/remove/${taskId}${search}`);
    });
  };
  const editor =
    drawing &&
    asset.data &&
    removal &&
    (removal.media_type === "PPT" ? (
      <ChooseDialog
        removal={removal}
        busy={busy}
        onUse={(chosen) => void run({ chosen })}
        onClose={() => setDrawing(false)}
      />
    ) : (
      <Suspense>
        <EditorDialog
          asset={asset.data}
          initial={drawingBefore(payload, removal.candidates, sizeOf(asset.data))}
          useLabel={t("orderMask") + (price ? ` · ${words("units", { n: price.units })}` : "")}
          onUse={(made) => void run({ drawing: made })}
          onClose={() => setDrawing(false)}
        />
      </Suspense>
    ));
  return { busy, draw: () => setDrawing(true), run: (how) => void run(how), editor };
}

/** Of slides what was found is chosen from: a mark there is a shape, not a place. */
function ChooseDialog({
  removal,
  busy,
  onUse,
  onClose,
}: {
  removal: RemovalOut;
  busy: boolean;
  onUse: (chosen: number[]) => void;
  onClose: () => void;
}) {
  const t = useText(removalTexts);
  const words = useText(removeTexts);
  const common = useText(commonTexts);
  const [chosen, setChosen] = useState<number[]>([]);
  return (
    <Modal
      opened
      onClose={onClose}
      size="lg"
      title={t("chooseTitle")}
      closeButtonProps={{ "aria-label": common("close") }}
    >
      <Stack>
        {removal.candidates.length === 0 ? (
          <Text size="sm">{words("nothingFound")}</Text>
        ) : (
          <CandidateList candidates={removal.candidates} chosen={chosen} slides onChange={setChosen} />
        )}
        <MarkedPicture removal={removal} chosen={chosen} />
        <Button disabled={chosen.length === 0} loading={busy} onClick={() => onUse(chosen)}>
          {t("removeChosen")}
        </Button>
        <Note>{t("sameRights", { basis: words(`basis${removal.rights_basis}`) })}</Note>
      </Stack>
    </Modal>
  );
}

export function Note({ children }: { children: React.ReactNode }) {
  return (
    <Text size="xs" c="dimmed">
      {children}
    </Text>
  );
}
