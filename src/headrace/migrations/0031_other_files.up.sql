-- headrace: no-transaction
-- Files that are no media are kept, too, where the settings name their types.

ALTER TABLE headrace.assets DROP CONSTRAINT IF EXISTS ck_assets_media_type;
ALTER TABLE headrace.assets ADD CONSTRAINT ck_assets_media_type
  CHECK (media_type IN ('IMAGE', 'VIDEO', 'PDF', 'PPT', 'OTHER')) NOT VALID;
ALTER TABLE headrace.assets VALIDATE CONSTRAINT ck_assets_media_type;

-- Files of one type of all users, also of one that hardly anybody has.
DROP INDEX CONCURRENTLY IF EXISTS headrace.idx_assets_media_type_listed;
CREATE INDEX CONCURRENTLY idx_assets_media_type_listed ON headrace.assets (media_type, created_at DESC, id DESC)
  WHERE status = 'UPLOADED';
