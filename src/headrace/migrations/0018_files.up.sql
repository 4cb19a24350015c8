-- Files: what is known of each, how long it stays, and uploads that are under way.

ALTER TABLE headrace.assets ADD COLUMN meta_json jsonb;
ALTER TABLE headrace.assets ADD COLUMN expire_at timestamptz;
ALTER TABLE headrace.assets ADD COLUMN preview_key text;
ALTER TABLE headrace.assets ADD COLUMN purged_at timestamptz;
ALTER TABLE headrace.assets ADD COLUMN checked_at timestamptz;
-- Nothing has written to assets before this release: there is nothing to look at, and nobody to hold up.
-- squawk-ignore constraint-missing-not-valid
ALTER TABLE headrace.assets ADD CONSTRAINT ck_assets_purged CHECK (purged_at IS NULL OR status = 'DELETED');

-- Lists, one's own and everybody's; who shares an object; what has to go, and when; what the sweep has not seen for longest.
-- squawk-ignore require-concurrent-index-creation
CREATE INDEX idx_assets_object ON headrace.assets (split_part(storage_key, '#', 1));
-- squawk-ignore require-concurrent-index-creation
CREATE INDEX idx_assets_listed ON headrace.assets (user_id, created_at DESC, id DESC) WHERE status = 'UPLOADED';
-- squawk-ignore require-concurrent-index-creation
CREATE INDEX idx_assets_all_listed ON headrace.assets (created_at DESC, id DESC) WHERE status = 'UPLOADED';
-- squawk-ignore require-concurrent-index-creation
CREATE INDEX idx_assets_user_sha256 ON headrace.assets (user_id, sha256) WHERE status = 'UPLOADED';
-- squawk-ignore require-concurrent-index-creation
CREATE INDEX idx_assets_expire_at ON headrace.assets (expire_at) WHERE status = 'UPLOADED';
-- squawk-ignore require-concurrent-index-creation
CREATE INDEX idx_assets_to_purge ON headrace.assets (deleted_at) WHERE status = 'DELETED' AND purged_at IS NULL;
-- squawk-ignore require-concurrent-index-creation
CREATE INDEX idx_assets_checked_at ON headrace.assets (checked_at NULLS FIRST) WHERE status = 'UPLOADED';

COMMENT ON COLUMN headrace.assets.meta_json IS 'What the inspection found: format, pixels, pages, frames, duration, orientation, encryption, signatures.';
COMMENT ON COLUMN headrace.assets.expire_at IS 'When it is deleted by itself; null: never.';
COMMENT ON COLUMN headrace.assets.storage_key IS 'Where the bytes lie in the bucket. Equal files of one user share their bytes: then # and the id of the row follow, which are no part of the object''s name.';
COMMENT ON COLUMN headrace.assets.preview_key IS 'Where its preview lies, in the bucket preview; null until somebody asked for it.';
COMMENT ON COLUMN headrace.assets.purged_at IS 'When this row stopped to hold on to bytes: they are gone, or another row''s.';
COMMENT ON COLUMN headrace.assets.checked_at IS 'When the sweep last saw the bytes.';
COMMENT ON TABLE headrace.assets IS 'Uploaded files. DELETED means that nobody reaches it any more; the bytes go soon after (purged_at), the row stays.';


-- An upload is there before its first byte and until its bytes are somebody's: the sweep of orphans asks here, and so does
-- the quota.
CREATE TABLE headrace.uploads (
  id                 varchar(64) PRIMARY KEY,
  user_id            varchar(64) NOT NULL,
  asset_id           varchar(64) NOT NULL,
  method             varchar(16) NOT NULL
                     CONSTRAINT ck_uploads_method CHECK (method IN ('STREAM', 'PARTS', 'DIRECT')),
  origin_name        varchar(255) NOT NULL,
  size_bytes         bigint NOT NULL
                     CONSTRAINT ck_uploads_size_bytes CHECK (size_bytes >= 0),
  sha256             varchar(64)
                     CONSTRAINT ck_uploads_sha256 CHECK (sha256 ~ '^[0-9a-f]{64}$'),
  part_bytes         bigint
                     CONSTRAINT ck_uploads_part_bytes CHECK (part_bytes > 0),
  storage_bucket     varchar(63) NOT NULL DEFAULT 'media',
  storage_key        text NOT NULL,
  storage_upload_id  text,
  strip_location     boolean NOT NULL DEFAULT false,
  status             varchar(16) NOT NULL DEFAULT 'OPEN'
                     CONSTRAINT ck_uploads_status CHECK (status IN ('OPEN', 'COMPLETING', 'COMPLETED', 'ABORTED')),
  error_code         varchar(64),
  lease_token        varchar(64),
  lease_until        timestamptz,
  expire_at          timestamptz NOT NULL,
  created_at         timestamptz NOT NULL DEFAULT now(),
  updated_at         timestamptz NOT NULL DEFAULT now(),
  CONSTRAINT fk_uploads_users_user_id FOREIGN KEY (user_id) REFERENCES headrace.users (id),
  CONSTRAINT uk_uploads_storage_key UNIQUE (storage_key),
  CONSTRAINT ck_uploads_parts CHECK ((part_bytes IS NOT NULL) = (method <> 'STREAM')),
  CONSTRAINT ck_uploads_lease CHECK (
    (lease_until IS NOT NULL) = (status = 'COMPLETING') AND (lease_token IS NOT NULL) = (status = 'COMPLETING')
  )
);
CREATE INDEX idx_uploads_user_created_at ON headrace.uploads (user_id, created_at DESC, id DESC);
CREATE INDEX idx_uploads_expire_at ON headrace.uploads (expire_at);

COMMENT ON TABLE headrace.uploads IS 'Files on their way in. A row is there before the first byte.';
COMMENT ON COLUMN headrace.uploads.asset_id IS 'The id that the file will have.';
COMMENT ON COLUMN headrace.uploads.size_bytes IS 'As announced, and taken from the quota; 0 if a streamed upload did not say.';
COMMENT ON COLUMN headrace.uploads.sha256 IS 'As announced: the file must have it.';
COMMENT ON COLUMN headrace.uploads.strip_location IS 'Whether the place where a picture was taken is removed from it before it is kept.';
COMMENT ON COLUMN headrace.uploads.storage_upload_id IS 'The storage''s own name for an upload in parts.';
COMMENT ON COLUMN headrace.uploads.lease_until IS 'Whoever completes it has until then; afterwards another may.';
COMMENT ON COLUMN headrace.uploads.expire_at IS 'When an upload that was not completed is swept, and one that was is forgotten.';


CREATE TABLE headrace.upload_parts (
  upload_id          varchar(64) NOT NULL,
  number             integer NOT NULL
                     CONSTRAINT ck_upload_parts_number CHECK (number BETWEEN 1 AND 10000),
  size_bytes         bigint NOT NULL
                     CONSTRAINT ck_upload_parts_size_bytes CHECK (size_bytes > 0),
  sha256             varchar(64) NOT NULL
                     CONSTRAINT ck_upload_parts_sha256 CHECK (sha256 ~ '^[0-9a-f]{64}$'),
  etag               text,
  created_at         timestamptz NOT NULL DEFAULT now(),
  PRIMARY KEY (upload_id, number),
  CONSTRAINT fk_upload_parts_uploads_upload_id FOREIGN KEY (upload_id) REFERENCES headrace.uploads (id) ON DELETE CASCADE
);

COMMENT ON TABLE headrace.upload_parts IS 'Parts that are stored; in any order.';
COMMENT ON COLUMN headrace.upload_parts.etag IS 'The storage''s tag of the part, where it has one.';

GRANT SELECT, INSERT, UPDATE, DELETE ON headrace.uploads, headrace.upload_parts TO headrace_app;


-- Results: what content type and length are, which the storage is not asked for.

ALTER TABLE headrace.task_results ADD COLUMN file_name varchar(255);
ALTER TABLE headrace.task_results ADD COLUMN mime_type varchar(128);
ALTER TABLE headrace.task_results ADD COLUMN size_bytes bigint;
ALTER TABLE headrace.task_results ADD COLUMN sha256 varchar(64);
ALTER TABLE headrace.task_results ADD COLUMN preview_mime_type varchar(128);
ALTER TABLE headrace.task_results ADD COLUMN preview_size_bytes bigint;
ALTER TABLE headrace.task_results ADD COLUMN deleted_at timestamptz;
ALTER TABLE headrace.task_results ADD COLUMN purged_at timestamptz;
-- squawk-ignore require-concurrent-index-creation
CREATE INDEX idx_task_results_result_key ON headrace.task_results (result_key);

COMMENT ON COLUMN headrace.task_results.deleted_at IS 'Since when nobody reaches the files any more.';
COMMENT ON COLUMN headrace.task_results.purged_at IS 'When the bytes were gone.';
