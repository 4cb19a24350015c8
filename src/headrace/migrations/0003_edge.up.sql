-- What API processes share: answers already given, and who calls too often.

CREATE TABLE headrace.idempotency_keys (
  id                 bigserial PRIMARY KEY,
  scope              varchar(64) NOT NULL,
  user_id            varchar(64),
  idempotency_key    varchar(128) NOT NULL
                     CONSTRAINT ck_idempotency_keys_idempotency_key CHECK (idempotency_key <> ''),
  request_hash       char(64) NOT NULL
                     CONSTRAINT ck_idempotency_keys_request_hash CHECK (request_hash ~ '^[0-9a-f]{64}$'),
  response_json      jsonb,
  response_headers   jsonb,
  http_status        integer NOT NULL
                     CONSTRAINT ck_idempotency_keys_http_status CHECK (http_status BETWEEN 100 AND 599),
  result_task_id     varchar(64),
  expires_at         timestamptz NOT NULL,
  created_at         timestamptz NOT NULL DEFAULT now(),
  CONSTRAINT fk_idempotency_keys_users_user_id FOREIGN KEY (user_id) REFERENCES headrace.users (id),
  -- Without NULLS NOT DISTINCT every key of a caller who is not logged in would be new.
  CONSTRAINT uk_idempotency_scope_user_key UNIQUE NULLS NOT DISTINCT (scope, user_id, idempotency_key)
);
CREATE INDEX idx_idempotency_keys_expires_at ON headrace.idempotency_keys (expires_at);

COMMENT ON TABLE headrace.idempotency_keys IS 'Requests that happened, and happen only once: the first one''s answer is every later one''s. Written in the transaction of what was done; while that runs, an advisory lock stands for the row.';
COMMENT ON COLUMN headrace.idempotency_keys.request_hash IS 'HMAC-SHA-256 of method, path and body, lower-case hex: the same key with another request is refused. Keyed, because a body may hold a password.';
COMMENT ON COLUMN headrace.idempotency_keys.response_json IS 'The body. Where it holds a secret: {"sealed": …}, encrypted together with the headers.';
COMMENT ON COLUMN headrace.idempotency_keys.result_task_id IS 'The task that came of it. No foreign key: a key lives a day, a task longer; nothing is gained by checking each on the hot path.';


-- Unlogged: a limit is worth no WAL. After a crash it is empty, and everyone starts with a full allowance once.
-- No index on tat: every call moves it, and an index on it would make each of those moves costly (no HOT);
-- the reaper reads the table through, which is small.
CREATE UNLOGGED TABLE headrace.rate_limits (
  bucket             varchar(255) PRIMARY KEY,
  tat                timestamptz NOT NULL
) WITH (fillfactor = 50, autovacuum_vacuum_scale_factor = 0.05);

COMMENT ON TABLE headrace.rate_limits IS 'Rate limits over all API processes (GCRA).';
COMMENT ON COLUMN headrace.rate_limits.tat IS 'Theoretical arrival time: when the bucket will be empty again. In the past: as good as no row.';

GRANT SELECT, INSERT, UPDATE, DELETE ON headrace.idempotency_keys, headrace.rate_limits TO headrace_app;
GRANT USAGE ON SEQUENCE headrace.idempotency_keys_id_seq TO headrace_app;
