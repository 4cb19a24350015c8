import { describe, expect, it } from "vitest";
import { fieldsOf } from "./schema";

describe("fieldsOf", () => {
  it("finds the kind of every field", () => {
    const found = fieldsOf({
      type: "object",
      required: ["to"],
      properties: {
        to: { type: "string" },
        copies: { anyOf: [{ type: "integer", minimum: 1 }, { type: "null" }], default: null },
        level: { $ref: "#/$defs/Level" },
        tags: { type: "array", items: { type: "string" } },
        cells: { type: "array", items: { type: "object" } },
        nested: { type: "object", properties: { on: { type: "boolean" } } },
        open: { type: "object" },
      },
      $defs: { Level: { enum: ["low", "high"] } },
    });
    expect(found?.map((field) => [field.name, field.kind, field.required])).toEqual([
      ["to", "text", true],
      ["cells", "json", false],
      ["copies", "number", false],
      ["level", "choice", false],
      ["nested", "object", false],
      ["open", "json", false],
      ["tags", "words", false],
    ]);
  });

  it("knows no form for what is no object, and does not follow a schema that holds itself for ever", () => {
    expect(fieldsOf({ type: "string" })).toBeNull();
    expect(fieldsOf(null)).toBeNull();
    expect(fieldsOf({ type: "object", additionalProperties: { type: "boolean" } })).toBeNull();
    expect(fieldsOf({ type: "object", properties: {} })).toEqual([]);
    const node = { $ref: "#/$defs/Node" };
    const found = fieldsOf({ ...node, $defs: { Node: { type: "object", properties: { next: node } } } });
    expect(found?.[0]?.kind).toBe("object");
    expect(fieldsOf({ $ref: "#/$defs/A", $defs: { A: { $ref: "#/$defs/A" } } })).toBeNull();
  });
});
