/**
 * How often a page reads again what is somebody else's. Each such look is in the audit trail, so pages that stay open
 * look seldom; whoever wants to know now presses the button, and what is one's own is read as often as it changes.
 */
export const AUDITED_EVERY_MS = 60_000;
export const OWN_EVERY_MS = 3000;
