"""The same mark over many views of the world: frames of a clip, pictures of a batch. Plain functions on arrays."""
