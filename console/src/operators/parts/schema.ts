// JSON Schema as far as a form can show it. What it cannot is written as JSON; the server checks both alike.

export interface Schema {
  readonly type?: string | readonly string[];
  readonly title?: string;
  readonly description?: string;
  readonly properties?: Readonly<Record<string, Schema>>;
  readonly required?: readonly string[];
  readonly enum?: readonly unknown[];
  readonly const?: unknown;
  readonly items?: Schema;
  readonly additionalProperties?: unknown;
  readonly anyOf?: readonly Schema[];
  readonly allOf?: readonly Schema[];
  readonly default?: unknown;
  readonly minimum?: number;
  readonly maximum?: number;
  readonly $ref?: string;
  readonly $defs?: Readonly<Record<string, Schema>>;
}

interface Shared {
  readonly name: string;
  readonly title: string;
  readonly description: string | undefined;
  readonly required: boolean;
  readonly initial: unknown;
}

export type Field = Shared &
  (
    | { readonly kind: "text" | "boolean" | "words" | "json" }
    | { readonly kind: "number"; readonly whole: boolean; readonly least?: number; readonly most?: number }
    | { readonly kind: "choice"; readonly choices: readonly unknown[] }
    | { readonly kind: "object"; readonly fields: readonly Field[] }
  );

const DEEPEST = 3;

/** The fields of an object's schema; null where it describes no object. */
export function fieldsOf(schema: Schema | null | undefined): readonly Field[] | null {
  return schema ? fields(schema, schema.$defs ?? {}, 0) : null;
}

function fields(given: Schema, definitions: Readonly<Record<string, Schema>>, depth: number): readonly Field[] | null {
  const schema = plain(given, definitions);
  const open = !schema.properties && schema.additionalProperties !== false;
  if (schema.type !== "object" || open) return null;
  const required = new Set(schema.required);
  const found = Object.entries(schema.properties ?? {}).map(([name, inner]) =>
    field(name, inner, required.has(name), definitions, depth),
  );
  // The database does not keep the order in which they were declared: what must be there comes first, then by name.
  return found.sort((a, b) => Number(b.required) - Number(a.required) || a.name.localeCompare(b.name));
}

function field(
  name: string,
  given: Schema,
  required: boolean,
  definitions: Readonly<Record<string, Schema>>,
  depth: number,
): Field {
  const schema = plain(given, definitions);
  const description = given.description ?? schema.description;
  const shared = { name, title: name, description, required, initial: given.default ?? schema.default };
  if (schema.enum) return { ...shared, kind: "choice", choices: schema.enum };
  if (schema.const !== undefined) return { ...shared, kind: "choice", choices: [schema.const] };
  switch (schema.type) {
    case "string":
      return { ...shared, kind: "text" };
    case "boolean":
      return { ...shared, kind: "boolean" };
    case "integer":
    case "number": {
      const least = schema.minimum === undefined ? {} : { least: schema.minimum };
      const most = schema.maximum === undefined ? {} : { most: schema.maximum };
      return { ...shared, kind: "number", whole: schema.type === "integer", ...least, ...most };
    }
    case "array":
      return plain(schema.items ?? {}, definitions).type === "string" ? { ...shared, kind: "words" } : json(shared);
    case "object": {
      const inner = depth < DEEPEST ? fields(schema, definitions, depth + 1) : null;
      return inner === null ? json(shared) : { ...shared, kind: "object", fields: inner };
    }
    default:
      return json(shared);
  }
}

function json(shared: Shared): Field {
  return { ...shared, kind: "json" };
}

/** Without references, and without the null that a field may also be. */
function plain(given: Schema, definitions: Readonly<Record<string, Schema>>, depth = 0): Schema {
  if (depth > 8) return {};
  if (given.$ref) return plain(definitions[given.$ref.replace("#/$defs/", "")] ?? {}, definitions, depth + 1);
  const others = (given.anyOf ?? given.allOf)?.filter((each) => each.type !== "null");
  if (others?.length === 1 && others[0]) return plain(others[0], definitions, depth + 1);
  if (Array.isArray(given.type)) {
    const types = given.type.filter((each) => each !== "null");
    return types.length === 1 ? { ...given, type: types[0] } : {};
  }
  return given;
}
