/**
 * The polling interval for other users' data. Each such read is audited, so pages that stay open
 * poll seldom; a button reloads at once, and the user's own data is read after every change.
 */
export const AUDITED_EVERY_MS = 60_000;
export const OWN_EVERY_MS = 3000;
