"""One mark over many different pictures: frames of a clip or pictures of a batch. Pure functions on arrays."""
