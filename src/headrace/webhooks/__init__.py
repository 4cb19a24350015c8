"""Other people's servers that want to know: endpoints, signed deliveries, and every attempt on record."""
