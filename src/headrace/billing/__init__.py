"""Money: plans, subscriptions, entitlements, and the ledger that explains every unit. docs/why/billing.md."""
