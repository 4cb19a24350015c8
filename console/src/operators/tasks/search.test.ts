import { expect, it } from "vitest";
import { suggestionsFor } from "./search";

const kinds = (text: string, owner: { id: string; name: string } | null = null) =>
  suggestionsFor(text, ["report.build", "report.send", "mail"], owner).map(({ kind, value }) => `${kind} ${value}`);

it("offers what a text may mean, the most exact first", () => {
  expect(kinds(" ")).toEqual([]);
  expect(kinds("tsk_01h455")).toEqual(["task tsk_01h455"]);
  expect(kinds("u_01h455")).toEqual(["owner u_01h455"]);
  expect(kinds("Jonas", { id: "u_1", name: "jonas" })).toEqual(["owner u_1", "title Jonas", "error Jonas"]);
  expect(kinds("report")).toEqual(["type report.build", "type report.send", "title report", "error report"]);
  expect(kinds("KeyError")).toEqual(["title KeyError", "error KeyError"]);
});
