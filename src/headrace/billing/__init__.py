"""Billing: plans, subscriptions, payments, and the ledger that accounts for every unit."""
