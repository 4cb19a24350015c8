"""Events for a broker: NATS JetStream, which keeps them for whoever subscribes there."""
