"""Orders and their payment with WeChat Pay."""
