import { Button, Menu } from "@mantine/core";
import { type ReactNode, useState } from "react";
import { type Column, IconCheck } from "../../components";
import { useText } from "../../i18n";
import { partTexts } from "./parts.texts";

const KEY = "headrace.columns.";

function read(name: string, first: readonly string[]): readonly string[] {
  try {
    const kept: unknown = JSON.parse(localStorage.getItem(KEY + name) ?? "null");
    return Array.isArray(kept) ? kept.map(String) : first;
  } catch {
    return first;
  }
}

/** Which columns of a list are shown, kept in this browser; the first one always is. */
export function useColumns<T>(
  name: string,
  columns: readonly Column<T>[],
  hiddenAtFirst: readonly string[],
): { shown: readonly Column<T>[]; menu: ReactNode } {
  const t = useText(partTexts);
  const [hidden, setHidden] = useState(() => read(name, hiddenAtFirst));
  const toggle = (key: string) => {
    const next = hidden.includes(key) ? hidden.filter((each) => each !== key) : [...hidden, key];
    setHidden(next);
    try {
      localStorage.setItem(KEY + name, JSON.stringify(next));
    } catch {
      // It is as before after a reload then.
    }
  };
  const menu = (
    <Menu position="bottom-end" closeOnItemClick={false}>
      <Menu.Target>
        <Button variant="default">{t("columns")}</Button>
      </Menu.Target>
      <Menu.Dropdown>
        {columns.slice(1).map((column) => (
          <Menu.Item
            key={column.key}
            role="menuitemcheckbox"
            aria-checked={!hidden.includes(column.key)}
            rightSection={hidden.includes(column.key) ? undefined : <IconCheck size={14} />}
            onClick={() => toggle(column.key)}
          >
            {column.header}
          </Menu.Item>
        ))}
      </Menu.Dropdown>
    </Menu>
  );
  return { shown: columns.filter((column, index) => index === 0 || !hidden.includes(column.key)), menu };
}
