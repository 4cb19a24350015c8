"""A client for addresses that strangers choose: checked, pinned, and bounded in time and bytes."""
