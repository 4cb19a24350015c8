"""Money: plans and subscriptions, what they allow, and the ledger that explains every unit."""
