-- headrace: no-transaction
-- Files that are no media are kept, too, where the settings name their types.

ALTER TABLE headrace.assets DROP CONSTRAINT IF EXISTS ck_assets_media_type;
ALTER TABLE headrace.assets ADD CONSTRAINT ck_assets_media_type
  CHECK (media_type IN ('IMAGE', 'VIDEO', 'PDF', 'PPT', 'OTHER')) NOT VALID;
ALTER TABLE headrace.assets VALIDATE CONSTRAINT ck_assets_media_type;
