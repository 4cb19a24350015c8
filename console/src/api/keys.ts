// The keys of everything that is read from the server. A key begins with the name of its group; to invalidate a group's
// `all` is to read again everything in it that is shown.

/** The filter of a list is the last part of its key: `live/useChanges` decides by it which rows belong there. */
export const keys = {
  apiKeys: { all: ["api-keys"] },
  archives: { all: ["archives"] },
  assets: {
    one: (id: string | undefined) => ["assets", "one", id],
    notOrdered: ["assets", "not-ordered"],
  },
  audit: {
    all: ["audit"],
    list: (filter: object) => ["audit", "list", filter],
  },
  // What happened does not change: not in the group that is read again.
  auditEvent: (id: string) => ["audit-event", id],
  bulk: {
    all: ["bulk"],
    list: ["bulk", "list"],
    one: (id: string) => ["bulk", "one", id],
  },
  capabilities: ["capabilities"],
  configs: {
    all: ["configs"],
    list: (filter: object) => ["configs", "list", filter],
  },
  configKeys: ["config-keys"],
  eventTypes: ["event-types"],
  ledger: {
    all: ["ledger"],
    list: (filter: object) => ["ledger", "list", filter],
  },
  ledgerVerification: ["ledger-verification"],
  locks: {
    all: ["locks"],
    list: (filter: object) => ["locks", "list", filter],
  },
  me: ["me"],
  secondFactor: ["second-factor"],
  missing: (url: string) => ["missing", url],
  notifications: {
    all: ["notifications"],
    unread: ["notifications", "unread"],
    list: (unread: boolean) => ["notifications", "list", unread],
  },
  operators: {
    overview: ["operators", "overview"],
    statistics: (range: string, type: string) => ["operators", "statistics", range, type],
  },
  outbox: {
    all: ["outbox"],
    overview: ["outbox", "overview"],
    events: (filter: object) => ["outbox", "events", filter],
  },
  partitions: { all: ["partitions"] },
  payments: {
    all: ["payments"],
    list: (problem: boolean) => ["payments", "list", problem],
  },
  plans: {
    all: ["plans"],
    list: ["plans", "list"],
    names: ["plans", "names"],
    offered: ["plans", "offered"],
  },
  queues: { all: ["queues"] },
  removals: {
    all: ["removals"],
    recent: ["removals", "recent"],
    one: (taskId: string, over: boolean | undefined) => ["removals", "one", taskId, over],
    batch: (batch: string) => ["removals", "batch", batch],
    taken: (id: string) => ["removals", "taken", id],
  },
  results: (taskId: string) => ["results", taskId],
  risks: {
    all: ["risks"],
    list: (filter: object) => ["risks", "list", filter],
    board: ["risks", "board"],
  },
  runs: {
    all: ["runs"],
    list: (filter: object) => ["runs", "list", filter],
    timeline: (filter: object) => ["runs", "timeline", filter],
    one: (id: string) => ["runs", "one", id],
    why: (id: string) => ["runs", "why", id],
  },
  schedules: {
    all: ["schedules"],
    list: (filter: object) => ["schedules", "list", filter],
    one: (id: string) => ["schedules", "one", id],
    next: (id: string, version: number, nextRun: string | null) => ["schedules", "next", id, version, nextRun],
    statistics: (id: string, executions: number) => ["schedules", "statistics", id, executions],
  },
  // A form is filled once: not in the group that is read again.
  scheduleForm: (id: string | undefined) => ["schedule-form", id],
  schedulePreview: (body: object) => ["schedule-preview", body],
  sessions: { all: ["sessions"] },
  settings: ["settings"],
  subscriptions: {
    all: ["subscriptions"],
    list: ["subscriptions", "list"],
  },
  tasks: {
    all: ["tasks"],
    own: (filter: object) => ["tasks", "own", filter],
    ownLists: ["tasks", "own"],
    everybodys: (filter: object) => ["tasks", "everybodys", filter],
    everybodysLists: ["tasks", "everybodys"],
    one: (id: string) => ["tasks", "one", id],
    allSteps: (id: string) => ["tasks", "steps", id],
    steps: (id: string, onlyFailed: boolean) => ["tasks", "steps", id, onlyFailed],
    why: (id: string) => ["tasks", "why", id],
  },
  taskTypes: ["task-types"],
  usage: {
    all: ["usage"],
    balance: ["usage", "balance"],
    storage: ["usage", "storage"],
    days: ["usage", "days"],
    ledger: ["usage", "ledger"],
    orders: ["usage", "orders"],
    order: (id: string) => ["usage", "order", id],
    orderCheck: (id: string) => ["usage", "order-check", id],
    quote: (assetIds: readonly string[], quality: string) => ["usage", "quote", assetIds, quality],
    subscriptions: ["usage", "subscriptions"],
  },
  users: {
    all: ["users"],
    list: (filter: object) => ["users", "list", filter],
    one: (id: string) => ["users", "one", id],
    balance: (id: string) => ["users", "balance", id],
  },
  views: ["views"],
  webhooks: {
    all: ["webhooks"],
    endpoints: ["webhooks", "endpoints"],
    endpoint: (id: string) => ["webhooks", "endpoint", id],
    statistics: (id: string) => ["webhooks", "statistics", id],
    deliveries: (endpointId: string) => ["webhooks", "deliveries", endpointId],
    delivery: (id: string) => ["webhooks", "delivery", id],
  },
  workers: { all: ["workers"] },
};
