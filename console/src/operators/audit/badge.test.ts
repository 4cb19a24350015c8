import { afterEach, expect, it, vi } from "vitest";
import { setLanguage } from "../../i18n";
import { badgeOf } from "./badge";

vi.stubGlobal("document", { documentElement: {} }); // where the language is noted
afterEach(() => setLanguage("en"));

it("never calls a failed sign-in signed in, in either language", () => {
  const failed = { action: "login" as const, data: { outcome: "failure", reason: "wrong_password" } };
  const entered = { action: "login" as const, data: { outcome: "success", method: "password" } };
  setLanguage("en");
  expect(badgeOf(failed)).toEqual({ label: "sign-in failed", tone: "bad" });
  expect(badgeOf({ ...failed, data: { ...failed.data, purpose: "delete" } }).label).toBe("wrong password");
  expect(badgeOf(entered)).toEqual({ label: "signed in", tone: "neutral" });
  setLanguage("zh");
  expect(badgeOf(failed).label).toBe("登录失败");
  expect(badgeOf(entered).label).toBe("登录");
});
