"""Who has which plan, until when, and how it goes on."""
