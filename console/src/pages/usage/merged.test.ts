import { expect, it } from "vitest";
import type { EntryOut } from "../../api";
import { merged } from "./merged";

const one = (
  id: string,
  task_id: string | null,
  status: string,
  direction: string,
  units: number,
  title?: string,
  hold_id: string | null = null,
) => ({ id, task_id, status, direction, units, task_title: title ?? null, hold_id }) as EntryOut;

it("shows one row for each order, with its file and what it cost", () => {
  const entries = [
    one("led_9", "tsk_3", "HELD", "DEBIT", 2, "clip.mp4"),
    one("led_8", "tsk_2", "COMMITTED", "CREDIT", 1, "bad.jpg"),
    one("led_7", "tsk_1", "RELEASED", "CREDIT", 4, "deck.pptx", "led_4"),
    one("led_6", "tsk_1", "COMMITTED", "DEBIT", 1, "deck.pptx", "led_4"),
    one("led_5", "tsk_2", "COMMITTED", "DEBIT", 1, undefined, "led_3"),
    one("led_4", "tsk_1", "HELD", "DEBIT", 5),
    one("led_3", "tsk_2", "HELD", "DEBIT", 1),
    one("led_2", "tsk_0", "RELEASED", "CREDIT", 3, undefined, "led_0"),
    one("led_1", null, "COMMITTED", "CREDIT", 500),
  ];
  expect(merged(entries).map(({ title, units, state }) => [title, units, state])).toEqual([
    ["clip.mp4", 2, "held"],
    ["bad.jpg", 0, "returned"],
    ["deck.pptx", 1, "used"],
    [null, 0, "released"],
    [null, -500, "granted"],
  ]);
});

it("shows what is held for a task that runs again beside what an earlier run gave back", () => {
  const entries = [
    one("led_3", "tsk_1", "HELD", "DEBIT", 2, "clip.mp4"),
    one("led_2", "tsk_1", "RELEASED", "CREDIT", 2, "clip.mp4", "led_1"),
    one("led_1", "tsk_1", "HELD", "DEBIT", 2, "clip.mp4"),
  ];
  expect(merged(entries).map(({ units, state }) => [units, state])).toEqual([[2, "held"]]);
});
