"""The outbox for administrators, and the catalogue of events for everybody."""
