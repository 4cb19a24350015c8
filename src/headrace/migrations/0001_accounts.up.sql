-- Who: people, the product itself, and what they log in with.

CREATE TABLE headrace.users (
  id                 varchar(64) PRIMARY KEY,
  wechat_openid      varchar(128),
  mobile             varchar(32)
                     CONSTRAINT ck_users_mobile CHECK (mobile ~ '^\+[1-9][0-9]{6,14}$'),  -- E.164
  status             varchar(16) NOT NULL DEFAULT 'ACTIVE'
                     CONSTRAINT ck_users_status CHECK (status IN ('ACTIVE', 'SUSPENDED', 'DELETED')),
  username           varchar(64),
  email              varchar(255),
  password_hash      varchar(128),
  role               varchar(16) NOT NULL DEFAULT 'USER'
                     CONSTRAINT ck_users_role CHECK (role IN ('USER', 'ADMIN')),
  version            integer NOT NULL DEFAULT 0,
  created_at         timestamptz NOT NULL DEFAULT now(),
  updated_at         timestamptz NOT NULL DEFAULT now(),
  deleted_at         timestamptz,
  last_login_at      timestamptz,
  CONSTRAINT uk_users_wechat_openid UNIQUE (wechat_openid),
  -- A way in, or no longer a person: deleting an account empties every personal column.
  CONSTRAINT ck_users_credential CHECK (
    (username IS NOT NULL AND password_hash IS NOT NULL) OR wechat_openid IS NOT NULL OR status = 'DELETED'
  ),
  CONSTRAINT ck_users_deleted CHECK ((deleted_at IS NOT NULL) = (status = 'DELETED')),
  -- Any script is welcome in a name; blanks, control characters and the invisible ones that make two names look
  -- alike are not. Spelled out, because [[:space:]] means less or more from one locale to the next.
  CONSTRAINT ck_users_username CHECK (
    username <> ''
    AND username !~ '[\u0001-\u0020\u007f-\u00a0\u00ad\u034f\u061c\u115f\u1160\u1680\u180e\u2000-\u200f\u2028-\u202f\u205f-\u206f\u3000\u3164\ufe00-\ufe0f\ufeff\uffa0\ufff9-\ufffb]'
  ),
  -- The product acts as a user whom nobody can log in as.
  CONSTRAINT ck_users_system CHECK (
    id <> 'u_00000000000000000000000000'
    OR (status = 'ACTIVE' AND role = 'ADMIN' AND password_hash = '!' AND wechat_openid IS NULL)
  )
);
CREATE UNIQUE INDEX idx_users_username ON headrace.users (lower(username));
-- "Is there another administrator?" is asked under a lock; they are few.
CREATE INDEX idx_users_admins ON headrace.users (created_at DESC, id DESC) WHERE role = 'ADMIN';
CREATE INDEX idx_users_status_created_at ON headrace.users (status, created_at DESC);
CREATE INDEX idx_users_created_at ON headrace.users (created_at DESC, id DESC);

COMMENT ON TABLE headrace.users IS 'People, and the product itself (u_ and 26 zeros).';
COMMENT ON COLUMN headrace.users.username IS 'Unique whatever the case. Null for a WeChat user and for a deleted one.';
COMMENT ON COLUMN headrace.users.password_hash IS 'Argon2id in PHC form. ! is no password at all.';
COMMENT ON COLUMN headrace.users.version IS 'Optimistic lock, and the ETag.';


INSERT INTO headrace.users (id, username, password_hash, role)
VALUES ('u_00000000000000000000000000', 'system', '!', 'ADMIN');


CREATE TABLE headrace.sessions (
  id                 varchar(64) PRIMARY KEY,
  user_id            varchar(64) NOT NULL,
  token_hash         bytea NOT NULL
                     CONSTRAINT ck_sessions_token_hash CHECK (octet_length(token_hash) = 32),
  client_ip          inet,
  user_agent         text,
  created_at         timestamptz NOT NULL DEFAULT now(),
  last_seen_at       timestamptz NOT NULL DEFAULT now(),
  expires_at         timestamptz NOT NULL,
  revoked_at         timestamptz,
  CONSTRAINT fk_sessions_users_user_id FOREIGN KEY (user_id) REFERENCES headrace.users (id) ON DELETE CASCADE,
  CONSTRAINT uk_sessions_token_hash UNIQUE (token_hash),
  CONSTRAINT ck_sessions_expires_at CHECK (expires_at > created_at)
) WITH (fillfactor = 85);  -- last_seen_at moves often and is in no index: room on the page keeps that cheap (HOT)
CREATE INDEX idx_sessions_user_id_created_at ON headrace.sessions (user_id, created_at DESC);
CREATE INDEX idx_sessions_expires_at ON headrace.sessions (expires_at);

COMMENT ON TABLE headrace.sessions IS 'People who are logged in. The token itself is only in the cookie.';
COMMENT ON COLUMN headrace.sessions.token_hash IS 'SHA-256 of the token.';


CREATE TABLE headrace.api_keys (
  id                 varchar(64) PRIMARY KEY,
  user_id            varchar(64) NOT NULL,
  name               varchar(64) NOT NULL
                     CONSTRAINT ck_api_keys_name CHECK (btrim(name) <> ''),
  key_hash           bytea NOT NULL
                     CONSTRAINT ck_api_keys_key_hash CHECK (octet_length(key_hash) = 32),
  key_hint           varchar(16) NOT NULL,
  scopes             text[] NOT NULL DEFAULT '{}'
                     CONSTRAINT ck_api_keys_scopes CHECK (array_position(scopes, NULL) IS NULL),
  expires_at         timestamptz,
  last_used_at       timestamptz,
  revoked_at         timestamptz,
  created_at         timestamptz NOT NULL DEFAULT now(),
  updated_at         timestamptz NOT NULL DEFAULT now(),
  CONSTRAINT fk_api_keys_users_user_id FOREIGN KEY (user_id) REFERENCES headrace.users (id) ON DELETE CASCADE,
  CONSTRAINT uk_api_keys_key_hash UNIQUE (key_hash)
) WITH (fillfactor = 85);
CREATE UNIQUE INDEX uk_api_keys_user_name_active ON headrace.api_keys (user_id, name) WHERE revoked_at IS NULL;
CREATE INDEX idx_api_keys_user_id_created_at ON headrace.api_keys (user_id, created_at DESC);

COMMENT ON TABLE headrace.api_keys IS 'Programs'' keys. A key is shown once and kept only as its hash.';
COMMENT ON COLUMN headrace.api_keys.key_hash IS 'SHA-256 of the key.';
COMMENT ON COLUMN headrace.api_keys.key_hint IS 'The last characters, so that a person can tell keys apart.';


-- Logged, unlike rate_limits: a guesser must not get a fresh start by crashing the server.
CREATE TABLE headrace.login_throttles (
  subject            varchar(320) PRIMARY KEY,
  failures           integer NOT NULL DEFAULT 0
                     CONSTRAINT ck_login_throttles_failures CHECK (failures >= 0),
  first_failed_at    timestamptz NOT NULL DEFAULT now(),
  last_failed_at     timestamptz NOT NULL DEFAULT now(),
  blocked_until      timestamptz,
  CONSTRAINT ck_login_throttles_order CHECK (last_failed_at >= first_failed_at)
) WITH (fillfactor = 70);

COMMENT ON TABLE headrace.login_throttles IS 'Failed logins by account and by address.';
COMMENT ON COLUMN headrace.login_throttles.subject IS 'address:<IPv4 address or IPv6 /64>; account:<lower-case name>; known:<address>:<name> for an account where its owner logged in lately; change:<user> for changes of a password.';


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

GRANT SELECT, INSERT, UPDATE, DELETE ON
  headrace.users, headrace.sessions, headrace.api_keys, headrace.login_throttles,
  headrace.account_deletions
TO headrace_app;
