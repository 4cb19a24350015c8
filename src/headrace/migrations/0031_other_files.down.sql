-- headrace: no-transaction
-- An earlier release knows no other files. Theirs stay downloadable as documents of which nothing is known.

DROP INDEX CONCURRENTLY IF EXISTS headrace.idx_assets_media_type_listed;
ALTER TABLE headrace.assets DROP CONSTRAINT IF EXISTS ck_assets_media_type;
UPDATE headrace.assets SET media_type = 'PDF' WHERE media_type = 'OTHER';
ALTER TABLE headrace.assets ADD CONSTRAINT ck_assets_media_type
  CHECK (media_type IN ('IMAGE', 'VIDEO', 'PDF', 'PPT')) NOT VALID;
ALTER TABLE headrace.assets VALIDATE CONSTRAINT ck_assets_media_type;
