import { expect, it } from "vitest";
import { ApiError } from "../api";
import { errorWords } from "./ProblemAlert";

it("names a body that a proxy refused for its size", () => {
  // A proxy answers with a page of its own: there is no problem of the API to read.
  expect(errorWords(new ApiError(413, {}))).toContain("proxy’s size limit");
  expect(errorWords(new ApiError(413, { code: "file_too_large", detail: "At most 50 MB." }))).toBe("At most 50 MB.");
});

it("says in its own words what the server says for programs", () => {
  const wrong = new ApiError(422, { code: "validation_failed", detail: "The request does not match the schema." });
  expect(errorWords(wrong)).toBe("Some fields are not valid.");
});
