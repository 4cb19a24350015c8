"""What can be bought: plans, their price, their units and features."""
