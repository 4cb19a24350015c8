ALTER TABLE headrace.removals DROP COLUMN returned_at;
