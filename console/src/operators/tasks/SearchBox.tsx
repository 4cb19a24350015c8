import { Combobox, TextInput, useCombobox } from "@mantine/core";
import { useDebouncedValue } from "@mantine/hooks";
import { useQuery } from "@tanstack/react-query";
import { useState } from "react";
import { useNavigate } from "react-router";
import { api, data, keys } from "../../api";
import { IconSearch } from "../../components";
import { useText } from "../../i18n";
import { type Suggestion, suggestionsFor } from "./search";
import { taskTexts } from "./tasks.texts";

/** One box for everything a task is looked for by; it offers what the text may mean. */
export function SearchBox({
  types,
  onChoose,
}: {
  types: readonly string[];
  onChoose: (filter: Partial<Record<"title" | "error" | "type" | "owner", string>>) => void;
}) {
  const t = useText(taskTexts);
  const navigate = useNavigate();
  const box = useCombobox();
  const [text, setText] = useState("");
  const [asked] = useDebouncedValue(text.trim(), 250);
  const owner = useQuery({
    queryKey: keys.users.byName(asked),
    queryFn: async () =>
      (await data(api.GET("/v1/admin/users", { params: { query: { username: asked, limit: 1 } } }))).items[0] ?? null,
    enabled: /^[^\s_]{2,64}$/.test(asked),
    staleTime: 60_000,
  }).data;
  const found = suggestionsFor(text, types, owner ? { id: owner.id, name: owner.username ?? owner.id } : null);
  const choose = (each: Suggestion | undefined) => {
    if (each === undefined) return;
    box.closeDropdown();
    setText("");
    if (each.kind === "task") void navigate(`/operators/tasks/${each.value}`);
    else onChoose({ [each.kind]: each.value });
  };
  const words: Record<Suggestion["kind"], (each: Suggestion) => string> = {
    title: (each) => t("inTitle", { text: each.value }),
    error: (each) => t("inError", { text: each.value }),
    type: (each) => t("ofType", { name: each.name }),
    owner: (each) => t("ofOwner", { name: each.name }),
    task: (each) => t("openOne", { id: each.name }),
  };
  return (
    <Combobox store={box} onOptionSubmit={(index) => choose(found[Number(index)])}>
      <Combobox.Target>
        <TextInput
          label={t("search")}
          placeholder={t("searchHint")}
          leftSection={<IconSearch size={14} />}
          miw={280}
          value={text}
          onChange={(event) => {
            setText(event.currentTarget.value);
            box.openDropdown();
            box.selectFirstOption();
          }}
          onFocus={() => box.openDropdown()}
          onBlur={() => box.closeDropdown()}
        />
      </Combobox.Target>
      <Combobox.Dropdown hidden={found.length === 0}>
        <Combobox.Options>
          {found.map((each, index) => (
            <Combobox.Option key={`${each.kind}${each.value}`} value={`${index}`}>
              {words[each.kind](each)}
            </Combobox.Option>
          ))}
        </Combobox.Options>
      </Combobox.Dropdown>
    </Combobox>
  );
}
