import { Anchor } from "@mantine/core";
import { Link, useSearchParams } from "react-router";
import { useText } from "../../i18n";
import { removalTexts } from "./remove.texts";
import { useBatch } from "./useBatch";

/** Within a batch: back to all its files, and on to the next that needs an answer. */
export function BatchWalk({ taskId }: { taskId: string }) {
  const [params] = useSearchParams();
  const batch = params.get("batch");
  return batch === null ? null : <Walk batch={batch} taskId={taskId} />;
}

function Walk({ batch, taskId }: { batch: string; taskId: string }) {
  const t = useText(removalTexts);
  const { asking } = useBatch(batch);
  const rest = asking.filter((each) => each.id !== taskId);
  const search = `?batch=${encodeURIComponent(batch)}`;
  return (
    <>
      <Anchor component={Link} to={`/remove/batch/${batch}`} size="sm">
        {t("backToBatch")}
      </Anchor>
      {rest[0] && (
        <Anchor component={Link} to={`/remove/${rest[0].id}${search}`} size="sm" fw={600}>
          {t("nextAnswer", { n: rest.length })}
        </Anchor>
      )}
    </>
  );
}
