import { ActionIcon, Button, Group, MultiSelect, Select, TextInput, Tooltip } from "@mantine/core";
import { useDebouncedCallback } from "@mantine/hooks";
import { type ReactNode, useEffect, useMemo, useState } from "react";
import { commonTexts, IconRefresh, IconSearch, IconX } from "../../components";
import { useText } from "../../i18n";
import classes from "./FilterBar.module.css";
import { partTexts } from "./parts.texts";

/** What a list is narrowed by, in a row that wraps. */
export function FilterBar({
  active,
  onClear,
  onReload,
  children,
  actions,
}: {
  active: boolean;
  onClear: () => void;
  onReload?: () => void;
  children: ReactNode;
  actions?: ReactNode;
}) {
  const t = useText(commonTexts);
  return (
    <Group gap="xs" align="flex-end">
      {children}
      {active && (
        <Button variant="subtle" size="sm" leftSection={<IconX size={14} />} onClick={onClear}>
          {t("clearFilters")}
        </Button>
      )}
      {(actions || onReload) && (
        <div className={classes.actions}>
          {onReload && (
            <Tooltip label={t("refresh")}>
              <ActionIcon variant="default" size={36} aria-label={t("refresh")} onClick={onReload}>
                <IconRefresh size={16} />
              </ActionIcon>
            </Tooltip>
          )}
          {actions}
        </div>
      )}
    </Group>
  );
}

/** Text that is applied after a pause in typing. */
export function TextFilter({
  label,
  value,
  onChange,
  hint,
  width = 180,
}: {
  label: string;
  value: string;
  onChange: (value: string) => void;
  /** What can be asked for, while nothing is. */
  hint?: string;
  width?: number;
}) {
  const [typed, setTyped] = useState(value);
  const tell = useDebouncedCallback(onChange, 350);
  useEffect(() => setTyped(value), [value]);
  return (
    <TextInput
      label={label}
      className={classes.input}
      w={width}
      value={typed}
      placeholder={hint}
      leftSection={<IconSearch size={14} />}
      onChange={(event) => {
        setTyped(event.currentTarget.value);
        tell(event.currentTarget.value.trim());
      }}
    />
  );
}

export interface Choice {
  readonly value: string;
  readonly label: string;
}

export function SelectFilter({
  label,
  value,
  choices,
  onChange,
  all,
  width = 170,
}: {
  label: string;
  value: string;
  choices: readonly Choice[];
  onChange: (value: string) => void;
  /** What it is called when none of them is chosen. */
  all?: string;
  width?: number;
}) {
  const t = useText(commonTexts);
  return (
    <Select
      label={label}
      className={classes.input}
      w={width}
      data={[{ value: "", label: all ?? t("all") }, ...choices]}
      value={value}
      allowDeselect={false}
      searchable={choices.length > 12}
      onChange={(chosen) => onChange(chosen ?? "")}
    />
  );
}

/** Several of a few, in the address as a list with commas. */
export function ManyFilter({
  label,
  value,
  choices,
  onChange,
  width = 230,
}: {
  label: string;
  value: string;
  choices: readonly Choice[];
  onChange: (value: string) => void;
  width?: number;
}) {
  const t = useText(commonTexts);
  const chosen = value === "" ? [] : value.split(",");
  return (
    <MultiSelect
      label={label}
      className={classes.input}
      miw={width}
      data={[...choices]}
      value={chosen}
      placeholder={chosen.length === 0 ? t("all") : undefined}
      clearable
      onChange={(next) => onChange(next.join(","))}
    />
  );
}

const LENGTHS: Record<string, number> = { hour: 1, day: 24, week: 168, month: 720 };
const KEY = "headrace.range";

/** The time range that was chosen last, on any page. */
export function rememberedRange(): string {
  try {
    return localStorage.getItem(KEY) ?? "";
  } catch {
    return "";
  }
}

/** A range up to now, which is remembered. */
export function RangeFilter({ value, onChange }: { value: string; onChange: (value: string) => void }) {
  const t = useText(partTexts);
  const choices = [
    { value: "ever", label: t("ever") },
    { value: "hour", label: t("hour") },
    { value: "day", label: t("day") },
    { value: "week", label: t("week") },
    { value: "month", label: t("month") },
  ];
  return (
    <Select
      label={t("time")}
      className={classes.input}
      w={150}
      data={choices}
      value={value || "ever"}
      allowDeselect={false}
      onChange={(chosen) => {
        const next = chosen && chosen !== "ever" ? chosen : "";
        try {
          localStorage.setItem(KEY, next);
        } catch {
          // It holds for this page then.
        }
        onChange(next);
      }}
    />
  );
}

/** When a range begins; the same instant until it is chosen again, because cursors belong to it. */
export function useSince(range: string): string | undefined {
  return useMemo(() => {
    const hours = LENGTHS[range];
    return hours === undefined ? undefined : new Date(Date.now() - hours * 3_600_000).toISOString();
  }, [range]);
}
