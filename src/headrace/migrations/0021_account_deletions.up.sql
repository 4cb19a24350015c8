-- Accounts on their way out: what was asked for, how far it has come, and who carries it out at this moment.

CREATE TABLE headrace.account_deletions (
  id                 varchar(64) PRIMARY KEY,
  user_id            varchar(64) NOT NULL,
  requested_by       varchar(64) NOT NULL,
  status             varchar(16) NOT NULL DEFAULT 'WAITING'
                     CONSTRAINT ck_account_deletions_status CHECK (
                       status IN ('WAITING', 'RUNNING', 'COMPLETED', 'CANCELED')
                     ),
  status_before      varchar(16) NOT NULL
                     CONSTRAINT ck_account_deletions_status_before CHECK (status_before IN ('ACTIVE', 'SUSPENDED')),
  due_at             timestamptz NOT NULL,
  steps_done         text[] NOT NULL DEFAULT '{}',
  attempt            integer NOT NULL DEFAULT 0
                     CONSTRAINT ck_account_deletions_attempt CHECK (attempt >= 0),
  next_try_at        timestamptz NOT NULL,
  obstacle           varchar(255),
  started_at         timestamptz,
  ended_at           timestamptz,
  created_at         timestamptz NOT NULL DEFAULT now(),
  updated_at         timestamptz NOT NULL DEFAULT now(),
  CONSTRAINT fk_account_deletions_users_user_id FOREIGN KEY (user_id) REFERENCES headrace.users (id),
  CONSTRAINT ck_account_deletions_started CHECK ((started_at IS NOT NULL) = (status IN ('RUNNING', 'COMPLETED'))),
  CONSTRAINT ck_account_deletions_ended CHECK ((ended_at IS NOT NULL) = (status IN ('COMPLETED', 'CANCELED')))
);
-- An account is deleted once at a time, and for good once.
CREATE UNIQUE INDEX uk_account_deletions_user ON headrace.account_deletions (user_id) WHERE status <> 'CANCELED';
CREATE INDEX idx_account_deletions_due ON headrace.account_deletions (next_try_at)
  WHERE status IN ('WAITING', 'RUNNING');
CREATE INDEX idx_account_deletions_user_created_at ON headrace.account_deletions (user_id, created_at DESC, id DESC);
CREATE INDEX idx_account_deletions_created_at ON headrace.account_deletions (created_at DESC, id DESC);
CREATE INDEX idx_account_deletions_status_created_at ON headrace.account_deletions (status, created_at DESC, id DESC);

COMMENT ON TABLE headrace.account_deletions IS 'Deletions of accounts, step by step; nothing personal is in here.';
COMMENT ON COLUMN headrace.account_deletions.requested_by IS 'The user themselves, an administrator, or the system for an operator. No foreign key: only a name for somebody.';
COMMENT ON COLUMN headrace.account_deletions.status_before IS 'What undoing gives back to the user.';
COMMENT ON COLUMN headrace.account_deletions.due_at IS 'The end of the grace period: until then it can be undone.';
COMMENT ON COLUMN headrace.account_deletions.steps_done IS 'Names of the steps that have nothing left to do.';
COMMENT ON COLUMN headrace.account_deletions.attempt IS 'Counts who took it on; the fence of everything they write.';
COMMENT ON COLUMN headrace.account_deletions.next_try_at IS 'Not before this time; while a process carries it out, its lease ends here.';
COMMENT ON COLUMN headrace.account_deletions.obstacle IS 'Why the last attempt did not come to the end.';

CREATE FUNCTION headrace.account_deletion_may_move(source text, target text) RETURNS boolean
LANGUAGE sql IMMUTABLE PARALLEL SAFE
RETURN CASE source
  WHEN target    THEN true
  WHEN 'WAITING' THEN target IN ('RUNNING', 'CANCELED')
  WHEN 'RUNNING' THEN target = 'COMPLETED'
  ELSE false
END;
COMMENT ON FUNCTION headrace.account_deletion_may_move(text, text) IS 'Whether a deletion may go from one status to another (or stay).';

CREATE TRIGGER tr_account_deletions_status BEFORE UPDATE OF status ON headrace.account_deletions
  FOR EACH ROW WHEN (NOT headrace.account_deletion_may_move(OLD.status, NEW.status))
  EXECUTE FUNCTION headrace.refuse_state_move('status');
CREATE TRIGGER tr_account_deletions_touch BEFORE UPDATE ON headrace.account_deletions
  FOR EACH ROW WHEN (NEW.updated_at IS NOT DISTINCT FROM OLD.updated_at)
  EXECUTE FUNCTION headrace.touch_updated_at();

GRANT SELECT, INSERT, UPDATE, DELETE ON headrace.account_deletions TO headrace_app;
GRANT EXECUTE ON FUNCTION headrace.account_deletion_may_move(text, text) TO headrace_app;
