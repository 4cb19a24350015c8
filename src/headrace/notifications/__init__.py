"""What users are told inside the product, once for each event, in their language."""
