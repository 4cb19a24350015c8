-- Locks that outlive a transaction, with their history.

CREATE TABLE headrace.task_locks (
  id                 bigserial PRIMARY KEY,
  lock_key           varchar(255) NOT NULL
                     CONSTRAINT ck_task_locks_lock_key CHECK (lock_key <> ''),
  fence              bigint NOT NULL
                     CONSTRAINT ck_task_locks_fence CHECK (fence > 0),
  holder_id          varchar(255) NOT NULL,
  token              varchar(255) NOT NULL,
  state              varchar(32) NOT NULL
                     CONSTRAINT ck_task_locks_state CHECK (state IN ('active', 'expired', 'released')),
  acquired_at        timestamptz NOT NULL,
  expires_at         timestamptz NOT NULL,
  released_at        timestamptz,
  purpose            varchar(255),
  created_at         timestamptz NOT NULL DEFAULT now(),
  updated_at         timestamptz NOT NULL DEFAULT now(),
  -- A lock's key is a name among its owner's: nobody can take, hold up or even see a stranger's lock.
  user_id            varchar(64) NOT NULL DEFAULT 'u_00000000000000000000000000',
  CONSTRAINT fk_task_locks_users_user_id FOREIGN KEY (user_id) REFERENCES headrace.users (id),
  -- The key first, so that it also finds one key's locks whoever owns them.
  CONSTRAINT uk_task_locks_key_fence UNIQUE (lock_key, user_id, fence),
  CONSTRAINT ck_task_locks_expires_at CHECK (expires_at > acquired_at),
  CONSTRAINT ck_task_locks_released_at CHECK (
    (released_at IS NOT NULL) = (state = 'released') AND (released_at >= acquired_at OR released_at IS NULL)
  )
);
-- This is the lock: one active row for a key. A plain UNIQUE would forbid the history.
CREATE UNIQUE INDEX idx_task_locks_key ON headrace.task_locks (user_id, lock_key) WHERE state = 'active';
-- An owner's locks and everybody's, state by state and the newest first; those of every state go by the primary key.
CREATE INDEX idx_task_locks_user ON headrace.task_locks (user_id, state, id);
CREATE INDEX idx_task_locks_state ON headrace.task_locks (state, id);
CREATE INDEX idx_task_locks_expires_at ON headrace.task_locks (expires_at);
CREATE INDEX idx_task_locks_holder ON headrace.task_locks (holder_id, id);

COMMENT ON TABLE headrace.task_locks IS 'Who holds and who held which lock.';
COMMENT ON COLUMN headrace.task_locks.user_id IS 'Whose lock it is; the system''s own by default.';
COMMENT ON COLUMN headrace.task_locks.token IS 'SHA-256 of the token, which is known to the holder alone; renewing and releasing ask for it.';
COMMENT ON COLUMN headrace.task_locks.fence IS 'Grows with each acquisition of the key: what a holder guards can refuse an older one.';


-- Apart from the history, which retention thins out: the number must grow all the same.
CREATE TABLE headrace.lock_fences (
  lock_key           varchar(255) NOT NULL,
  fence              bigint NOT NULL
                     CONSTRAINT ck_lock_fences_fence CHECK (fence > 0),
  user_id            varchar(64) NOT NULL DEFAULT 'u_00000000000000000000000000',
  PRIMARY KEY (user_id, lock_key),
  CONSTRAINT fk_lock_fences_users_user_id FOREIGN KEY (user_id) REFERENCES headrace.users (id)
) WITH (fillfactor = 70);

COMMENT ON TABLE headrace.lock_fences IS 'The last fencing number of each lock key.';

GRANT SELECT, INSERT, UPDATE, DELETE ON headrace.task_locks, headrace.lock_fences TO headrace_app;
GRANT USAGE ON SEQUENCE headrace.task_locks_id_seq TO headrace_app;
