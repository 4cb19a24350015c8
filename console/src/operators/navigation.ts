import type { Destination } from "../shell/navigation";

/** What administrators can go to; loaded with the shell, so it holds names and addresses only. */
export const OPERATORS: readonly Destination[] = [];
