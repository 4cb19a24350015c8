-- What was ordered for which file, and who said that they may: a row beside each media task, written with it.
CREATE TABLE headrace.removals (
  task_id            varchar(64) PRIMARY KEY,
  user_id            varchar(64) NOT NULL,
  asset_id           varchar(64) NOT NULL,
  asset_sha256       varchar(64) NOT NULL
                     CONSTRAINT ck_removals_asset_sha256 CHECK (asset_sha256 ~ '^[0-9a-f]{64}$'),
  units              integer NOT NULL
                     CONSTRAINT ck_removals_units CHECK (units > 0),
  batch_id           varchar(64),
  rights_basis       varchar(16) NOT NULL
                     CONSTRAINT ck_removals_rights_basis CHECK (rights_basis IN ('OWNER', 'LICENSEE', 'AUTHORIZED')),
  rights_statement   text,
  principal_uid      varchar(64) NOT NULL,
  api_key_id         varchar(64),
  client_ip          varchar(64),
  user_agent         text,
  request_id         varchar(64),
  declared_at        timestamptz NOT NULL DEFAULT now(),
  CONSTRAINT fk_removals_tasks_task_id FOREIGN KEY (task_id) REFERENCES headrace.tasks (id) ON DELETE CASCADE,
  CONSTRAINT fk_removals_users_user_id FOREIGN KEY (user_id) REFERENCES headrace.users (id)
);
CREATE INDEX idx_removals_user_declared_at ON headrace.removals (user_id, declared_at DESC, task_id DESC);
CREATE INDEX idx_removals_declared_at ON headrace.removals (declared_at DESC, task_id DESC);
CREATE INDEX idx_removals_batch_id ON headrace.removals (batch_id) WHERE batch_id IS NOT NULL;
CREATE INDEX idx_removals_asset_id ON headrace.removals (asset_id);

COMMENT ON TABLE headrace.removals IS 'Orders of removal, each with its declaration of rights: which bytes, who, from where, when. Goes with its task.';
COMMENT ON COLUMN headrace.removals.asset_sha256 IS 'The bytes that the declaration is about, whatever becomes of the file.';
COMMENT ON COLUMN headrace.removals.batch_id IS 'What was ordered in one request has the same.';
COMMENT ON COLUMN headrace.removals.rights_basis IS 'By what right: the owner''s, a licence''s, or the owner''s permission.';

GRANT SELECT, INSERT, UPDATE, DELETE ON headrace.removals TO headrace_app;


-- Before and after, beside each other: made once, with the result.
ALTER TABLE headrace.task_results ADD COLUMN comparison_key text;
ALTER TABLE headrace.task_results ADD COLUMN comparison_size_bytes bigint;

COMMENT ON COLUMN headrace.task_results.comparison_key IS 'Where the picture of before and after lies, in the bucket preview; null where nothing can be drawn.';
