import {
  Button,
  Fieldset,
  Group,
  JsonInput,
  NumberInput,
  Select,
  Stack,
  TagsInput,
  Text,
  TextInput,
} from "@mantine/core";
import { useState } from "react";
import { useText } from "../../i18n";
import { partTexts } from "./parts.texts";
import { type Field, fieldsOf, type Schema } from "./schema";

type Values = Record<string, unknown>;

/** A form made from a JSON Schema, or JSON for what no form can say. `onChange` hears undefined while it is not valid. */
export function SchemaForm({
  schema,
  value,
  onChange,
}: {
  schema: unknown;
  value: unknown;
  onChange: (value: unknown) => void;
}) {
  const t = useText(partTexts);
  const fields = fieldsOf(schema as Schema | null);
  const fits = fields !== null && isRecord(value ?? {});
  const [raw, setRaw] = useState(!fits);
  const [text, setText] = useState(() => (value === undefined || value === null ? "" : JSON.stringify(value, null, 2)));
  const [why, setWhy] = useState<string | null>(null);
  const write = (typed: string) => {
    setText(typed);
    if (typed.trim() === "") {
      setWhy(null);
      onChange(null);
      return;
    }
    try {
      onChange(JSON.parse(typed));
      setWhy(null);
    } catch (error) {
      setWhy(error instanceof Error ? error.message : "?");
      onChange(undefined);
    }
  };
  if (raw || fields === null) {
    return (
      <Stack gap="xs" align="stretch">
        {fields === null && (
          <Text size="sm" c="dimmed">
            {t("noFields")}
          </Text>
        )}
        <JsonInput
          aria-label="JSON"
          autosize
          minRows={6}
          maxRows={24}
          value={text}
          onChange={write}
          error={why === null ? undefined : t("notJson", { why })}
          styles={{ input: { fontFamily: "var(--mantine-font-family-monospace)" } }}
        />
        {fields !== null && (
          <Group>
            <Button variant="subtle" size="compact-sm" disabled={why !== null} onClick={() => setRaw(false)}>
              {t("asForm")}
            </Button>
          </Group>
        )}
      </Stack>
    );
  }
  const values = isRecord(value) ? value : {};
  return (
    <Stack gap="sm">
      {fields.length === 0 && (
        <Text size="sm" c="dimmed">
          {t("takesNothing")}
        </Text>
      )}
      <FieldList fields={fields} values={values} onChange={onChange} />
      <Group>
        <Button
          variant="subtle"
          size="compact-sm"
          onClick={() => {
            setText(JSON.stringify(values, null, 2));
            setRaw(true);
          }}
        >
          {t("asJson")}
        </Button>
      </Group>
    </Stack>
  );
}

function FieldList({
  fields,
  values,
  onChange,
}: {
  fields: readonly Field[];
  values: Values;
  onChange: (values: Values) => void;
}) {
  return fields.map((field) => (
    <Input
      key={field.name}
      field={field}
      value={values[field.name]}
      onChange={(next) => {
        const { [field.name]: _, ...rest } = values;
        onChange(next === undefined ? rest : { ...rest, [field.name]: next });
      }}
    />
  ));
}

function Input({ field, value, onChange }: { field: Field; value: unknown; onChange: (value: unknown) => void }) {
  const t = useText(partTexts);
  const shared = {
    label: field.title,
    description: field.description,
    required: field.required,
    ...placeholder(field.initial),
  };
  switch (field.kind) {
    case "object":
      return (
        <Fieldset legend={field.title}>
          <Stack gap="sm">
            <FieldList fields={field.fields} values={isRecord(value) ? value : {}} onChange={onChange} />
          </Stack>
        </Fieldset>
      );
    case "boolean":
      return (
        <Select
          {...shared}
          data={[
            { value: "true", label: t("true") },
            { value: "false", label: t("false") },
          ]}
          value={typeof value === "boolean" ? String(value) : null}
          clearable={!field.required}
          onChange={(chosen) => onChange(chosen === null ? undefined : chosen === "true")}
        />
      );
    case "choice":
      return (
        <Select
          {...shared}
          data={field.choices.map(String)}
          value={value === undefined ? null : String(value)}
          clearable={!field.required}
          onChange={(chosen) => onChange(field.choices.find((each) => String(each) === chosen))}
        />
      );
    case "number":
      return (
        <NumberInput
          {...shared}
          allowDecimal={!field.whole}
          min={field.least}
          max={field.most}
          value={typeof value === "number" ? value : ""}
          onChange={(typed) => onChange(typed === "" ? undefined : Number(typed))}
        />
      );
    case "words":
      return (
        <TagsInput
          {...shared}
          value={Array.isArray(value) ? value.map(String) : []}
          onChange={(words) => onChange(words.length === 0 && !field.required ? undefined : words)}
        />
      );
    case "text":
      return (
        <TextInput
          {...shared}
          value={typeof value === "string" ? value : ""}
          onChange={({ currentTarget: { value: typed } }) =>
            onChange(typed === "" && !field.required ? undefined : typed)
          }
        />
      );
    case "json":
      return <JsonField shared={shared} value={value} onChange={onChange} />;
  }
}

function JsonField({
  shared,
  value,
  onChange,
}: {
  shared: { label: string; description: string | undefined; required: boolean };
  value: unknown;
  onChange: (value: unknown) => void;
}) {
  const t = useText(partTexts);
  const [text, setText] = useState(value === undefined ? "" : JSON.stringify(value));
  const [why, setWhy] = useState<string | null>(null);
  return (
    <JsonInput
      {...shared}
      autosize
      minRows={2}
      value={text}
      error={why === null ? undefined : t("notJson", { why })}
      onChange={(typed) => {
        setText(typed);
        try {
          onChange(typed.trim() === "" ? undefined : JSON.parse(typed));
          setWhy(null);
        } catch (error) {
          setWhy(error instanceof Error ? error.message : "?");
        }
      }}
    />
  );
}

/** What holds where nothing is given. */
function placeholder(initial: unknown): { placeholder?: string } {
  if (typeof initial === "string" && initial !== "") return { placeholder: initial };
  return typeof initial === "number" || typeof initial === "boolean" ? { placeholder: String(initial) } : {};
}

function isRecord(value: unknown): value is Values {
  return typeof value === "object" && value !== null && !Array.isArray(value);
}
