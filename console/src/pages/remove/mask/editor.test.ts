import { expect, it } from "vitest";
import { type Action, type Editor, edit, opened } from "./editor";

const start = opened({ width: 1000, height: 400, initial: null, boxesOnly: false });
const after = (editor: Editor, ...actions: Action[]) => actions.reduce(edit, editor);

it("draws, takes back and draws again", () => {
  const one: Action = { type: "draw", stroke: { kind: "box", box: [1, 2, 3, 4] } };
  const drawn = after(start, one, { type: "draw", stroke: { kind: "clear" }, page: 2 });
  expect(drawn.history.done.map((stroke) => stroke.kind)).toEqual(["box", "clear"]);
  expect(after(drawn, { type: "undo" }).history.done).toHaveLength(1);
  expect(after(drawn, { type: "undo" }, { type: "redo" }).history).toEqual(drawn.history);
  expect(start.history.done).toEqual([]); // nothing is changed in place
});

it("puts only boxes on a page of their own", () => {
  const box: Action = { type: "draw", stroke: { kind: "keep", box: [1, 2, 3, 4] }, page: 2 };
  const line: Action = { type: "draw", stroke: { kind: "brush", size: 5, points: [] }, page: 2 };
  expect(after(start, box, line).history.done).toEqual([
    { kind: "keep", box: [1, 2, 3, 4], page: 2 },
    { kind: "brush", size: 5, points: [] },
  ]);
});

it("keeps the brush between its limits, and lets the smallest grow", () => {
  expect(start.size).toBe(25);
  const smallest = after(start, ...Array.from({ length: 40 }, (): Action => ({ type: "resize", by: 0.85 })));
  expect(smallest.size).toBe(2);
  expect(after(smallest, { type: "resize", by: 1.15 }).size).toBe(3);
  const largest = after(start, ...Array.from({ length: 40 }, (): Action => ({ type: "resize", by: 1.18 })));
  expect(largest.size).toBe(400);
});

it("shows the whole picture again after a zoom or a change of the window", () => {
  const whole = { scale: 0.5, x: 10, y: 20 };
  const seen = after(
    start,
    { type: "window", whole },
    { type: "view", change: (view) => ({ ...view, scale: view.scale * 4 }) },
  );
  expect(seen.view.scale).toBe(2);
  expect(after(seen, { type: "fit" }).view).toEqual(whole);
});

it("begins with boxes where only boxes can be said", () => {
  expect(opened({ width: 10, height: 10, initial: null, boxesOnly: true }).tool).toBe("box");
});
