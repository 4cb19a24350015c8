-- Who wants which events: what nobody wants is not written.

CREATE TABLE headrace.event_interests (
  id                 bigint GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
  consumer           varchar(64) NOT NULL
                     CONSTRAINT ck_event_interests_consumer CHECK (consumer <> ''),
  key                varchar(64) NOT NULL DEFAULT '',
  pattern            varchar(128) NOT NULL
                     CONSTRAINT ck_event_interests_pattern CHECK (pattern ~ '^([a-z][a-z0-9_]*\.)*([a-z][a-z0-9_]*|\*)$'),
  user_id            varchar(64),
  task_type          varchar(255),
  created_at         timestamptz NOT NULL DEFAULT clock_timestamp(),  -- not now(): it has waited for others before
  CONSTRAINT uk_event_interests UNIQUE NULLS NOT DISTINCT (consumer, key, pattern, user_id, task_type)
);
-- "Does anybody want this event?", asked in the transaction of each change.
CREATE INDEX idx_event_interests_pattern_user ON headrace.event_interests (pattern, user_id);

COMMENT ON TABLE headrace.event_interests IS 'Which events are written to the outbox, and for whom. One that nobody wants is not.';
COMMENT ON COLUMN headrace.event_interests.consumer IS 'Who wants them: the name of a consumer of the relay.';
COMMENT ON COLUMN headrace.event_interests.key IS 'Which part of the consumer: an endpoint, say. Empty: the consumer itself.';
COMMENT ON COLUMN headrace.event_interests.pattern IS 'A type of events (task.created), all that begin alike (task.*), or all (*).';
COMMENT ON COLUMN headrace.event_interests.user_id IS 'Only events of this user; null: of everybody.';
COMMENT ON COLUMN headrace.event_interests.task_type IS 'Only events of tasks of this type; null: of every type, and of what is no task.';

ALTER TABLE headrace.outbox_events ADD COLUMN user_id varchar(64);
COMMENT ON COLUMN headrace.outbox_events.user_id IS 'Whose event it is; null: nobody''s.';

-- Each event paid for these and nothing asks by them: what waits is found by idx_outbox_events_open, and the published are
-- few. Dropping takes a moment only.
-- squawk-ignore require-concurrent-index-deletion
DROP INDEX headrace.idx_outbox_events_aggregate;
-- squawk-ignore require-concurrent-index-deletion
DROP INDEX headrace.idx_outbox_events_event_type_created_at;

ALTER TABLE headrace.task_types ADD COLUMN emits_always boolean DEFAULT false;
COMMENT ON COLUMN headrace.task_types.emits_always IS 'Whether its events are written also when nobody wants them.';

-- Those who call take the new ones, which have a parameter more.
-- squawk-ignore ban-drop-function
DROP FUNCTION IF EXISTS headrace.emit_task_events(text[], text[], text[], integer[], text[]);
-- squawk-ignore ban-drop-function
DROP FUNCTION IF EXISTS headrace.finish_tasks(integer, text, bigint[], integer[], text[], jsonb[], text[], text[]);

CREATE TABLE headrace.relays (
  id                 varchar(64) PRIMARY KEY,
  host               varchar(255) NOT NULL,
  pid                integer NOT NULL,
  asleep             boolean NOT NULL DEFAULT false,
  started_at         timestamptz NOT NULL DEFAULT now(),
  heartbeat_at       timestamptz NOT NULL DEFAULT now()
);
COMMENT ON TABLE headrace.relays IS 'Processes that give events to their consumers. One that is silent for a minute is not there.';
COMMENT ON COLUMN headrace.relays.asleep IS 'Whether it waits to be told of new events (NOTIFY headrace_events).';

CREATE TABLE headrace.broker_messages (
  id                 bigint GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
  event_position     bigint NOT NULL,
  tries              integer NOT NULL DEFAULT 0,
  leased_until       timestamptz,
  given_up_at        timestamptz
) WITH (autovacuum_vacuum_scale_factor = 0.02);  -- a queue
CREATE INDEX idx_broker_messages_leased ON headrace.broker_messages (leased_until) WHERE leased_until IS NOT NULL;
COMMENT ON TABLE headrace.broker_messages IS 'Events that the broker has not confirmed yet, in the order in which they are published.';
COMMENT ON COLUMN headrace.broker_messages.event_position IS 'outbox_events.id. No foreign key: each event would be locked for it.';
COMMENT ON COLUMN headrace.broker_messages.leased_until IS 'Until then one sender has it; that instant is its fence.';
COMMENT ON COLUMN headrace.broker_messages.given_up_at IS 'When the broker had refused it too often.';

GRANT SELECT, INSERT, UPDATE, DELETE ON headrace.event_interests, headrace.relays, headrace.broker_messages TO headrace_app;
