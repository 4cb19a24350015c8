declare global {
  // What libraries that add style sheets of their own look for.
  var __webpack_nonce__: string | undefined;
}

// Of a page that no server has filled in. A nonce may begin with any letters.
const PLACEHOLDER = "__CSP_NONCE__";
const found = document.querySelector<HTMLMetaElement>('meta[name="csp-nonce"]')?.content ?? "";
const usable = /^[A-Za-z0-9+/=_-]+$/.test(found) && found !== PLACEHOLDER;
if (usable) globalThis.__webpack_nonce__ = found;

/** The nonce with which the server allows styles that are made while the page runs; "" where it gave none. */
export function nonce(): string {
  return usable ? found : "";
}
