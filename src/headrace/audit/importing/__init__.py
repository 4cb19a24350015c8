"""Moving another system's ``audit_logs`` into the trail, by document 001's mapping."""
