// What a request needs to know of the session. The session's own module fills it in, so that neither needs the other.

interface Credentials {
  csrf: () => string | null;
  /** Ask the person to sign in again; true once they have, false if they would not. */
  renew: () => Promise<boolean>;
  /** Read the token again, because another tab may have signed in; true if it has changed. */
  refresh: () => Promise<boolean>;
}

export const credentials: Credentials = {
  csrf: () => null,
  renew: async () => false,
  refresh: async () => false,
};
