-- A route is what decides whether a worker may take a task: type, labels and queue. Rows of the queue carry its number, so
-- that a claim reads only what its worker may take. Tasks whose time has not come are kept apart in the same way.

CREATE TABLE headrace.task_routes (
  id                  integer GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
  task_type           varchar(255) NOT NULL,
  labels              jsonb NOT NULL DEFAULT '{}',
  queue               varchar(64) NOT NULL,
  created_at          timestamptz NOT NULL DEFAULT now()
);
-- Not unique: two submissions that create the same route at once do not wait for each other.
CREATE INDEX idx_task_routes_lookup ON headrace.task_routes (task_type, labels, queue);
COMMENT ON TABLE headrace.task_routes IS 'Type, labels and queue: what decides which workers may take a task. Duplicates do no harm.';
-- Never deleted: whether a queue or a type ever had a task is read here.
INSERT INTO headrace.task_routes (task_type, labels, queue)
SELECT DISTINCT task_type, labels, queue FROM headrace.task_lanes;
GRANT SELECT, INSERT, UPDATE, DELETE ON headrace.task_routes TO headrace_app;
GRANT USAGE ON SEQUENCE headrace.task_routes_id_seq TO headrace_app;

ALTER TABLE headrace.task_lanes ADD COLUMN route_id integer;
ALTER TABLE headrace.task_lanes ADD COLUMN created_at timestamptz NOT NULL DEFAULT now();
ALTER TABLE headrace.task_lanes ADD COLUMN retired_at timestamptz;
COMMENT ON COLUMN headrace.task_lanes.route_id IS 'Its row of task_routes; null in lanes of an earlier release, which are no longer used.';
COMMENT ON COLUMN headrace.task_lanes.retired_at IS 'Since when new tasks get another lane. A retired lane without tasks is deleted a day later.';

-- Which of the submitter's things it is about: told with its events.
ALTER TABLE headrace.tasks ADD COLUMN idempotency_key varchar(255);
COMMENT ON COLUMN headrace.tasks.idempotency_key IS 'The idempotency key that it was submitted with, for its events; idempotency_keys has those that still count.';

ALTER TABLE headrace.task_queue ADD COLUMN route_id integer NOT NULL DEFAULT 0;
ALTER TABLE headrace.task_queue ADD COLUMN delayed boolean NOT NULL DEFAULT false;
COMMENT ON COLUMN headrace.task_queue.route_id IS 'Which workers may take it: a row of task_routes; 0 until adopt_queue_rows sets it, in rows that a program of an earlier release wrote.';
COMMENT ON COLUMN headrace.task_queue.delayed IS 'Its run_at had not come when the row was written; release_delayed clears it.';
