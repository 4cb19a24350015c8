"""The ledger of known risks, for administrators."""
