DROP INDEX headrace.idx_task_results_result_key, headrace.idx_assets_object, headrace.idx_assets_user_sha256,
  headrace.idx_assets_expire_at, headrace.idx_assets_to_purge, headrace.idx_assets_checked_at,
  headrace.idx_assets_listed, headrace.idx_assets_all_listed;
ALTER TABLE headrace.assets DROP CONSTRAINT ck_assets_purged;
ALTER TABLE headrace.task_results
  DROP COLUMN file_name, DROP COLUMN mime_type, DROP COLUMN size_bytes, DROP COLUMN sha256,
  DROP COLUMN preview_mime_type, DROP COLUMN preview_size_bytes, DROP COLUMN deleted_at, DROP COLUMN purged_at;
DROP TABLE headrace.upload_parts, headrace.uploads;
ALTER TABLE headrace.assets
  DROP COLUMN meta_json, DROP COLUMN expire_at, DROP COLUMN preview_key, DROP COLUMN purged_at, DROP COLUMN checked_at;
COMMENT ON TABLE headrace.assets IS 'Uploaded files. DELETED means that the bytes are gone and the row stays.';
COMMENT ON COLUMN headrace.assets.storage_key IS NULL;
