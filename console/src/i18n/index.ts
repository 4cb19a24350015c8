export * as formats from "./formats";
export { type Language, language, setLanguage, useLanguage } from "./language";
export { type Text, type Texts, text, texts, useText, wordFor } from "./texts";
