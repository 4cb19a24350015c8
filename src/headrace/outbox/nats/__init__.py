"""Events for a broker: NATS JetStream, which stores them for its subscribers."""
