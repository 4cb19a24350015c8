-- Events that became true in the transaction that wrote them here; the relay tells the world.

CREATE TABLE headrace.outbox_events (
  id                 bigserial PRIMARY KEY,
  event_id           varchar(64) NOT NULL,
  event_type         varchar(128) NOT NULL,
  event_version      integer NOT NULL
                     CONSTRAINT ck_outbox_events_event_version CHECK (event_version > 0),
  aggregate_type     varchar(64) NOT NULL,
  aggregate_id       varchar(64) NOT NULL,
  trace_id           varchar(64),
  payload_json       jsonb NOT NULL,
  headers_json       jsonb,
  status             varchar(16) NOT NULL
                     CONSTRAINT ck_outbox_events_status CHECK (status IN ('PENDING', 'PUBLISHED', 'FAILED', 'DEAD')),
  retry_count        integer NOT NULL DEFAULT 0
                     CONSTRAINT ck_outbox_events_retry_count CHECK (retry_count >= 0),
  next_retry_at      timestamptz DEFAULT now(),  -- a new event is due at once; null would hide it from the relay
  published_at       timestamptz,
  created_at         timestamptz NOT NULL DEFAULT now(),
  CONSTRAINT uk_outbox_events_event_id UNIQUE (event_id),
  CONSTRAINT ck_outbox_events_published_at CHECK ((published_at IS NOT NULL) = (status = 'PUBLISHED'))
) WITH (autovacuum_vacuum_scale_factor = 0.02);  -- a queue: its dead rows lie where the relay reads
CREATE INDEX idx_outbox_events_status_next_retry_at ON headrace.outbox_events (status, next_retry_at);
CREATE INDEX idx_outbox_events_aggregate ON headrace.outbox_events (aggregate_type, aggregate_id);
CREATE INDEX idx_outbox_events_event_type_created_at ON headrace.outbox_events (event_type, created_at DESC);
-- Only what still has to go, in each aggregate's order: "is an older event of this aggregate still waiting?"
-- stays one look-up however long the history grows.
CREATE INDEX idx_outbox_events_open ON headrace.outbox_events (aggregate_type, aggregate_id, id)
  WHERE status IN ('PENDING', 'FAILED');

COMMENT ON TABLE headrace.outbox_events IS 'Events to publish, at least once and in order for one aggregate.';
COMMENT ON COLUMN headrace.outbox_events.event_id IS 'TypeID evt_…: the id receivers drop repeats by.';
COMMENT ON COLUMN headrace.outbox_events.headers_json IS '{trace_id, request_id}, where known: sent on beside the payload.';
COMMENT ON COLUMN headrace.outbox_events.next_retry_at IS 'Not before this time; while a relay has the event, its lease ends here.';

GRANT SELECT, INSERT, UPDATE, DELETE ON headrace.outbox_events TO headrace_app;
GRANT USAGE ON SEQUENCE headrace.outbox_events_id_seq TO headrace_app;
