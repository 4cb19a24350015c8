import { Anchor, Button, Group, Stack, Text } from "@mantine/core";
import { useQuery, useQueryClient } from "@tanstack/react-query";
import { lazy, Suspense, useState } from "react";
import { Link, useNavigate, useParams } from "react-router";
import { api, data, ifMatch, type RemovalOut } from "../../api";
import {
  Empty,
  IconBrush,
  IconDownload,
  IconPlayerStop,
  IconWand,
  Loading,
  Page,
  Panel,
  ProblemAlert,
  StateBadge,
  tellError,
  useConfirm,
} from "../../components";
import { useText } from "../../i18n";
import { isOver, useLiveTask } from "../../live/task";
import { Failure } from "./Failure";
import { MarkedPicture } from "./MarkedPicture";
import type { MaskDrawing } from "./mask/drawing";
import { download, metaOf, sizeOf } from "./media";
import { Found, Quality, ResultFacts } from "./Outcome";
import { orderAgain } from "./order";
import { ProgressPanel } from "./ProgressPanel";
import classes from "./RemovalPage.module.css";
import { ResultView } from "./ResultView";
import { removalTexts } from "./remove.texts";

const EditorDialog = lazy(() => import("./EditorDialog"));

/** One removal: how far it is, what became of it, and what to do about it. */
export default function RemovalPage() {
  const { taskId = "" } = useParams();
  return <Removal key={taskId} taskId={taskId} />;
}

function Removal({ taskId }: { taskId: string }) {
  const t = useText(removalTexts);
  const confirm = useConfirm();
  const task = useLiveTask(taskId);
  const status = task.data?.status;
  const removal = useQuery({
    queryKey: ["removals", "one", taskId, status && isOver(status)],
    queryFn: () => data(api.GET("/v1/removals/{task_id}", { params: { path: { task_id: taskId } } })),
    placeholderData: (before: RemovalOut | undefined) => before,
  });
  const again = useAgain(removal.data, task.data?.payload);
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
    try {
      await api.POST("/v1/tasks/{task_id}/cancel", {
        params: { path: { task_id: taskId }, header: ifMatch(task.data.version) },
      });
    } catch (refusal) {
      tellError(refusal);
    }
    void task.refetch();
  };
  return (
    <Page
      title={removal.data.asset_name ?? taskId}
      text={
        <Group gap="sm">
          <StateBadge state={task.data.status} />
          <Anchor component={Link} to={`/tasks/${taskId}`} size="sm">
            {t("details")}
          </Anchor>
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
          {removal.data.media_type !== "PPT" && (
            <Panel>
              <MarkedPicture removal={removal.data} chosen={[]} />
            </Panel>
          )}
        </>
      )}
      {task.data.status === "SUCCEEDED" && <Success removal={removal.data} again={again} />}
      {task.data.status === "FAILED" && <Failure removal={removal.data} again={again} />}
      {task.data.status === "CANCELED" && (
        <Panel>
          <Empty icon={IconPlayerStop} title={t("canceled")} />
        </Panel>
      )}
      {again.editor}
    </Page>
  );
}

function Success({ removal, again }: { removal: RemovalOut; again: Again }) {
  const t = useText(removalTexts);
  return (
    <div className={classes.columns}>
      <Panel>
        <ResultView removal={removal} />
      </Panel>
      <Stack>
        <Found candidates={removal.candidates}>
          <Button variant="light" fullWidth mt="sm" leftSection={<IconBrush size={16} />} onClick={again.draw}>
            {t("notRight")}
          </Button>
          {removal.quality === "STANDARD" && removal.media_type !== "PPT" && (
            <Button
              variant="subtle"
              fullWidth
              mt={6}
              loading={again.busy}
              onClick={() => again.run({ quality: "HIGH" })}
            >
              {t("highAgain")}
            </Button>
          )}
        </Found>
        <Quality taskId={removal.id} />
        <ResultFacts removal={removal} />
      </Stack>
    </div>
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
  const navigate = useNavigate();
  const queries = useQueryClient();
  const [busy, setBusy] = useState(false);
  const [drawing, setDrawing] = useState(false);
  const asset = useQuery({
    queryKey: ["assets", removal?.asset_id],
    queryFn: () => data(api.GET("/v1/assets/{asset_id}", { params: { path: { asset_id: removal?.asset_id ?? "" } } })),
    enabled: removal !== undefined,
  });
  const run: Again["run"] = async (how) => {
    if (!removal) return;
    setBusy(true);
    try {
      const found = asset.data ?? (await asset.refetch({ throwOnError: true })).data;
      if (!found) return;
      const same = { basis: removal.rights_basis, quality: removal.quality };
      const taskId = await orderAgain(found, payload, { ...same, ...how });
      setDrawing(false);
      void queries.invalidateQueries({ queryKey: ["removals"] });
      void navigate(`/remove/${taskId}`);
    } catch (refusal) {
      tellError(refusal);
    } finally {
      setBusy(false);
    }
  };
  const editor = drawing && asset.data && removal && (
    <Suspense>
      <EditorDialog
        asset={asset.data}
        initial={drawingOf(removal, sizeOf(asset.data) ?? { width: 0, height: 0 }, metaOf(asset.data).pages ?? null)}
        onUse={(made) => void run({ drawing: made })}
        onClose={() => setDrawing(false)}
      />
    </Suspense>
  );
  return { busy, draw: () => setDrawing(true), run: (how) => void run(how), editor };
}

/** What was found, as something to go on drawing from. */
function drawingOf(
  removal: RemovalOut,
  size: { width: number; height: number },
  pages: number | null,
): MaskDrawing | null {
  if (removal.candidates.length === 0 || size.width === 0) return null;
  const strokes = removal.candidates.map(({ box: [left = 0, top = 0, width = 1, height = 1] }) => ({
    kind: "box" as const,
    box: [Math.floor(left), Math.floor(top), Math.ceil(width), Math.ceil(height)] as const,
  }));
  // Of a document every candidate has pages of its own: a box on the first page would mean all of them.
  return pages !== null && pages > 1 ? null : { ...size, strokes };
}

export function Note({ children }: { children: React.ReactNode }) {
  return (
    <Text size="xs" c="dimmed">
      {children}
    </Text>
  );
}
