"""Plans: price, units and features."""
