import { ActionIcon, Group, Text, TextInput, Tooltip } from "@mantine/core";
import { useMemo, useState } from "react";
import { useText } from "../i18n";
import { commonTexts } from "./components.texts";
import { copyText } from "./copy";
import { IconChevronDown, IconChevronRight, IconCopy, IconSearch } from "./icons";
import classes from "./JsonView.module.css";
import { countMatches, matches, pathsToMatches } from "./json";

const OPEN_AT_FIRST = 2;

/** JSON that folds, copies and searches. Everything in it is shown as text. */
export function JsonView({ value, label }: { value: unknown; label?: string }) {
  const t = useText(commonTexts);
  const [query, setQuery] = useState("");
  const wanted = query.trim().toLowerCase();
  const found = useMemo(() => pathsToMatches(value, wanted), [value, wanted]);
  const opened = wanted && found.size > 0 ? found : null; // where nothing matches, it stays as it was
  return (
    <div className={classes.frame}>
      <Group gap="xs" className={classes.bar} wrap="nowrap">
        {label && (
          <Text size="sm" fw={600}>
            {label}
          </Text>
        )}
        <TextInput
          size="xs"
          variant="unstyled"
          className={classes.search}
          leftSection={<IconSearch size={14} />}
          placeholder={t("search")}
          aria-label={t("search")}
          value={query}
          onChange={(event) => setQuery(event.currentTarget.value)}
        />
        {wanted && (
          <Text size="xs" c="dimmed" style={{ whiteSpace: "nowrap" }}>
            {t("matches", { n: countMatches(value, wanted) })}
          </Text>
        )}
        <Tooltip label={t("copy")}>
          <ActionIcon
            variant="subtle"
            color="gray"
            size="sm"
            aria-label={t("copy")}
            onClick={() => void copyText(JSON.stringify(value, null, 2))}
          >
            <IconCopy size={15} />
          </ActionIcon>
        </Tooltip>
      </Group>
      {/* biome-ignore lint/a11y/noNoninteractiveTabindex: what scrolls must be reachable by keyboard */}
      <section className={classes.body} tabIndex={0} aria-label={label ?? "JSON"}>
        <Node value={value} path="$" depth={0} query={wanted} opened={opened} last />
      </section>
    </div>
  );
}

interface NodeProps {
  name?: string;
  value: unknown;
  path: string;
  depth: number;
  query: string;
  opened: ReadonlySet<string> | null;
  last: boolean;
}

function Node({ name, value, path, depth, query, opened, last }: NodeProps) {
  const t = useText(commonTexts);
  const [chosen, setChosen] = useState<boolean | null>(null);
  const key = name === undefined ? null : <Key name={name} query={query} />;
  if (typeof value !== "object" || value === null) {
    return (
      <div className={classes.line}>
        {key}
        <Leaf value={value} query={query} />
        {!last && ","}
      </div>
    );
  }
  const isList = Array.isArray(value);
  const entries: [string | undefined, unknown][] = isList
    ? value.map((each) => [undefined, each])
    : Object.entries(value);
  const open = chosen ?? (opened ? opened.has(path) : depth < OPEN_AT_FIRST);
  const [begin, end] = isList ? ["[", "]"] : ["{", "}"];
  if (entries.length === 0) {
    return (
      <div className={classes.line}>
        {key}
        {begin}
        {end}
        {!last && ","}
      </div>
    );
  }
  return (
    <div>
      <div className={classes.line}>
        <button
          type="button"
          className={classes.fold}
          aria-expanded={open}
          aria-label={`${open ? t("collapse") : t("expand")} ${name ?? ""}`}
          onClick={() => setChosen(!open)}
        >
          {open ? <IconChevronDown size={13} /> : <IconChevronRight size={13} />}
        </button>
        {key}
        {begin}
        {!open && (
          <>
            <span className={classes.count}> {t("items", { n: entries.length })} </span>
            {end}
            {!last && ","}
          </>
        )}
      </div>
      {open && (
        <>
          <div className={classes.inner}>
            {entries.map(([inner, each], index) => (
              <Node
                key={inner ?? index}
                name={inner}
                value={each}
                path={`${path}/${inner ?? index}`}
                depth={depth + 1}
                query={query}
                opened={opened}
                last={index === entries.length - 1}
              />
            ))}
          </div>
          <div className={classes.line}>
            {end}
            {!last && ","}
          </div>
        </>
      )}
    </div>
  );
}

function Key({ name, query }: { name: string; query: string }) {
  return (
    <span className={classes.key} data-match={matches(name, query) || undefined}>
      {name}
      <span className={classes.colon}>: </span>
    </span>
  );
}

function Leaf({ value, query }: { value: unknown; query: string }) {
  const shown = typeof value === "string" ? JSON.stringify(value) : String(value);
  return (
    <span
      className={classes.leaf}
      data-kind={value === null ? "null" : typeof value}
      data-match={matches(shown, query) || undefined}
    >
      {shown}
    </span>
  );
}
