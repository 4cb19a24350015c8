import { stateTexts } from "../../components";
import { useText, wordFor } from "../../i18n";
import { partTexts } from "../parts/parts.texts";
import classes from "./FilterWords.module.css";
import { taskTexts } from "./tasks.texts";

/** A filter in words, so that users see what they act on. */
export function FilterWords({ filter }: { filter: Readonly<Record<string, unknown>> }) {
  const t = useText(taskTexts);
  const part = useText(partTexts);
  const names: Record<string, string> = {
    status: part("state"),
    type: part("type"),
    queue: part("queue"),
    created_after: part("created"),
    created_before: part("created"),
    owner: t("whose"),
    ids: part("id"),
    internal: part("type"),
    name: part("id"),
  };
  const shown = Object.entries(filter).filter(
    ([name, value]) =>
      value !== undefined && value !== null && name !== "internal" && !(name === "owner" && value === "*"),
  );
  if (filter.internal === false) shown.push(["internal", t("notInternal")]);
  if (shown.length === 0) return <p className={classes.words}>{t("everything")}</p>;
  return (
    <dl className={classes.words}>
      {shown.map(([name, value]) => (
        <div key={name}>
          <dt>{names[name] ?? name}</dt>
          <dd>{wordsOf(name, value)}</dd>
        </div>
      ))}
    </dl>
  );
}

function wordsOf(name: string, value: unknown): string {
  if (name === "created_after") return `≥ ${new Date(String(value)).toLocaleString()}`;
  if (name === "created_before") return `< ${new Date(String(value)).toLocaleString()}`;
  if (name === "ids" && Array.isArray(value)) return value.length > 3 ? `${value.length}` : value.join(", ");
  if (Array.isArray(value)) return value.map((each) => wordFor(stateTexts, String(each))).join(", ");
  return String(value);
}
