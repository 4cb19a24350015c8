export { api, data, ifMatch } from "./client";
export { useConnectionLost, whenBack } from "./connection";
export { keys } from "./keys";
export { type Listing, type Page, useListing } from "./paging";
export { ApiError, isApiError } from "./problem";
export { type ListedStatus, query, several } from "./query";
export { patch } from "./rows";
export type * from "./schema";
export { randomKey } from "./transport";
