-- Links that are sent by e-mail (a forgotten password, a new address), and second factors of logins.

CREATE TABLE headrace.account_links (
  id                 varchar(64) PRIMARY KEY,
  user_id            varchar(64) NOT NULL,
  purpose            varchar(32) NOT NULL
                     CONSTRAINT ck_account_links_purpose CHECK (purpose IN ('PASSWORD_RESET', 'EMAIL_CHANGE')),
  token_hash         bytea NOT NULL
                     CONSTRAINT ck_account_links_token_hash CHECK (octet_length(token_hash) = 32),
  email              varchar(255) NOT NULL,
  created_at         timestamptz NOT NULL DEFAULT now(),
  expires_at         timestamptz NOT NULL,
  CONSTRAINT fk_account_links_users_user_id FOREIGN KEY (user_id) REFERENCES headrace.users (id) ON DELETE CASCADE,
  CONSTRAINT uk_account_links_token_hash UNIQUE (token_hash),
  CONSTRAINT ck_account_links_expires_at CHECK (expires_at > created_at)
);
CREATE INDEX idx_account_links_user_id_created_at ON headrace.account_links (user_id, created_at DESC);
CREATE INDEX idx_account_links_created_at ON headrace.account_links (created_at);
COMMENT ON TABLE headrace.account_links IS 'Links sent by e-mail, each for one use; the token itself is only in the e-mail. A used link is deleted.';
COMMENT ON COLUMN headrace.account_links.token_hash IS 'SHA-256 of the token.';
COMMENT ON COLUMN headrace.account_links.email IS 'Where it was sent; for EMAIL_CHANGE the address to be confirmed.';

CREATE TABLE headrace.second_factors (
  user_id            varchar(64) PRIMARY KEY,
  sealed_secret      text NOT NULL,
  last_step          bigint NOT NULL DEFAULT 0,
  created_at         timestamptz NOT NULL DEFAULT now(),
  CONSTRAINT fk_second_factors_users_user_id FOREIGN KEY (user_id) REFERENCES headrace.users (id) ON DELETE CASCADE
) WITH (fillfactor = 85);
COMMENT ON TABLE headrace.second_factors IS 'TOTP secrets (RFC 6238), encrypted. In use when users.second_factor_at is set; before that they wait for the first code.';
COMMENT ON COLUMN headrace.second_factors.last_step IS 'The time step of the last accepted code: no code is accepted twice.';

CREATE TABLE headrace.recovery_codes (
  user_id            varchar(64) NOT NULL,
  code_hash          bytea NOT NULL
                     CONSTRAINT ck_recovery_codes_code_hash CHECK (octet_length(code_hash) = 32),
  created_at         timestamptz NOT NULL DEFAULT now(),
  PRIMARY KEY (user_id, code_hash),
  CONSTRAINT fk_recovery_codes_second_factors_user_id FOREIGN KEY (user_id)
    REFERENCES headrace.second_factors (user_id) ON DELETE CASCADE
);
COMMENT ON TABLE headrace.recovery_codes IS 'Codes that replace the second factor once; a used code is deleted.';
COMMENT ON COLUMN headrace.recovery_codes.code_hash IS 'SHA-256 of the code, which has 80 random bits.';

GRANT SELECT, INSERT, UPDATE, DELETE ON headrace.account_links, headrace.second_factors, headrace.recovery_codes TO headrace_app;

ALTER TABLE headrace.users ADD COLUMN second_factor_at timestamptz;
COMMENT ON COLUMN headrace.users.second_factor_at IS 'When the second factor was turned on; NULL: a login takes the password alone.';
