// Every text of the console comes from here: a dictionary with the same keys in both languages, beside the page that
// shows it, so that a page that is loaded on demand brings its texts along.
//
//   export const greetings = texts({ hello: "Hello {name}" }, { hello: "{name}，你好" });
//   const t = useText(greetings);      t("hello", { name })
//
// `{n:file|files}` chooses by the number n. Placeholders are checked by the compiler, and against each other by a test.
import { useMemo } from "react";
import { type Language, language, useLanguage } from "./language";

type Name<S extends string> = S extends `${infer N}:${string}` ? N : S;
type Names<S extends string> = S extends `${string}{${infer N}}${infer Rest}` ? Name<N> | Names<Rest> : never;
type Arguments<S extends string> = [Names<S>] extends [never] ? [] : [values: Record<Names<S>, string | number>];

type Words = Readonly<Record<string, string>>;

export interface Texts<T extends Words> {
  readonly en: T;
  readonly zh: Readonly<Record<keyof T, string>>;
}

export type Text<T extends Words> = <K extends keyof T & string>(key: K, ...values: Arguments<T[K]>) => string;

/** A dictionary. The type of the second argument demands what the first one has. */
export function texts<const T extends Words>(en: T, zh: Readonly<Record<keyof T, string>>): Texts<T> {
  return { en, zh };
}

/** The text of a key in the language of now; the component is drawn again when the language changes. */
export function useText<T extends Words>(dictionary: Texts<T>): Text<T> {
  const chosen = useLanguage();
  return useMemo(() => textIn(dictionary, chosen), [dictionary, chosen]);
}

/** The same for what is no component. */
export function text<T extends Words>(dictionary: Texts<T>): Text<T> {
  return textIn(dictionary, language());
}

export function textIn<T extends Words>(dictionary: Texts<T>, chosen: Language): Text<T> {
  const words: Record<string, string> = dictionary[chosen];
  return (key, ...[values]) => fill(words[key] ?? key, values ?? {});
}

/** A word for a value that the server sent, or the value itself where there is none. */
export function wordFor<T extends Words>(dictionary: Texts<T>, key: string): string {
  const words: Record<string, string> = dictionary[language()];
  return words[key] ?? key;
}

export function fill(template: string, values: Record<string, string | number>): string {
  return template.replace(/\{(\w+)(?::([^|}]*)\|([^}]*))?\}/g, (whole, name: string, one?: string, other?: string) => {
    const value = values[name];
    if (value === undefined) return whole;
    if (one !== undefined && other !== undefined) return Number(value) === 1 ? one : other;
    return typeof value === "number" ? value.toLocaleString(language() === "zh" ? "zh-CN" : "en") : value;
  });
}
