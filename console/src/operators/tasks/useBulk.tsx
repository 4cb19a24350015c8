import { useNavigate } from "react-router";
import { api, data, isApiError, query, type TaskAction, type TaskFilterIn } from "../../api";
import { tell, useAct, useConfirm } from "../../components";
import { useText } from "../../i18n";
import { FilterWords } from "./FilterWords";
import { taskTexts } from "./tasks.texts";

/** Ask what is meant, with the number and the filter shown again; then have it done, and go to where it is followed. */
export function useBulk(): { busy: boolean; bulk: (action: TaskAction, filter: TaskFilterIn) => Promise<void> } {
  const t = useText(taskTexts);
  const confirm = useConfirm();
  const navigate = useNavigate();
  const { busy, act } = useAct();

  const ask = (action: TaskAction, filter: TaskFilterIn, count: number, exact: boolean, grew: boolean) => {
    const words = {
      cancel: [t(exact ? "askCancel" : "askCancelMany", { n: count }), t("doCancel")],
      retry: [t(exact ? "askRetry" : "askRetryMany", { n: count }), t("doRetry")],
      delete: [t(exact ? "askDelete" : "askDeleteMany", { n: count }), t("doDelete")],
    }[action];
    return confirm({
      title: words[0] ?? "",
      body: (
        <>
          {grew && <p>{t("grew", { n: count })}</p>}
          {filter.ids ? (
            <p>{t("selectedOnes")}</p>
          ) : (
            <>
              <p>{t("matching")}</p>
              <FilterWords filter={filter} />
            </>
          )}
          <p>{t("onlyThose")}</p>
          {action === "delete" && <p>{t("forGood")}</p>}
        </>
      ),
      action: words[1] ?? "",
      danger: action !== "retry",
    });
  };

  const bulk = async (action: TaskAction, filter: TaskFilterIn) => {
    await act(async () => {
      let { count, exact } = filter.ids
        ? { count: filter.ids.length, exact: true }
        : await data(api.GET("/v1/tasks/count", { params: { query: queryOf(action, filter) } }));
      if (count === 0) return tell(t("nothingToDo"));
      for (let grew = false; ; grew = true) {
        if (!(await ask(action, filter, count, exact, grew))) return;
        try {
          const made = await data(api.POST("/v1/tasks/bulk", { body: { action, filter, expected: count } }));
          return void navigate(`/operators/tasks/bulk/${made.task_id}`);
        } catch (refusal) {
          if (!isApiError(refusal, "count_grew")) throw refusal;
          const details = refusal.problem.details as { count?: number } | undefined;
          [count, exact] = [details?.count ?? count, true];
        }
      }
    });
  };
  return { busy, bulk };
}

function queryOf(action: TaskAction, filter: TaskFilterIn) {
  const { owner, ids: _, ...rest } = filter;
  return query({ action, ...rest, user_id: owner });
}
