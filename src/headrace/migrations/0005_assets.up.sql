-- Files that users bring. The bytes are in object storage; this says where, what and whose.

CREATE TABLE headrace.assets (
  id                 varchar(64) PRIMARY KEY,
  user_id            varchar(64) NOT NULL,
  media_type         varchar(16) NOT NULL
                     CONSTRAINT ck_assets_media_type CHECK (media_type IN ('IMAGE', 'VIDEO', 'PDF', 'PPT')),
  origin_name        varchar(255) NOT NULL,
  mime_type          varchar(128) NOT NULL,
  size_bytes         bigint NOT NULL
                     CONSTRAINT ck_assets_size_bytes CHECK (size_bytes > 0),
  sha256             char(64)
                     CONSTRAINT ck_assets_sha256 CHECK (sha256 ~ '^[0-9a-f]{64}$'),
  storage_bucket     varchar(63) NOT NULL DEFAULT 'media',
  storage_key        text NOT NULL,
  status             varchar(16) NOT NULL DEFAULT 'UPLOADED'
                     CONSTRAINT ck_assets_status CHECK (status IN ('UPLOADED', 'DELETED')),
  created_at         timestamptz NOT NULL DEFAULT now(),
  updated_at         timestamptz NOT NULL DEFAULT now(),
  deleted_at         timestamptz,
  CONSTRAINT fk_assets_users_user_id FOREIGN KEY (user_id) REFERENCES headrace.users (id),
  CONSTRAINT uk_assets_storage_key UNIQUE (storage_key),
  CONSTRAINT ck_assets_deleted CHECK ((deleted_at IS NOT NULL) = (status = 'DELETED'))
);
CREATE INDEX idx_assets_user_created_at ON headrace.assets (user_id, created_at DESC);
CREATE INDEX idx_assets_sha256 ON headrace.assets (sha256);

COMMENT ON TABLE headrace.assets IS 'Uploaded files. DELETED means that the bytes are gone and the row stays.';
COMMENT ON COLUMN headrace.assets.mime_type IS 'As recognised from the content, not as claimed.';
COMMENT ON COLUMN headrace.assets.sha256 IS 'Lower-case hex.';


GRANT SELECT, INSERT, UPDATE, DELETE ON headrace.assets TO headrace_app;
