ALTER TABLE headrace.workers DROP COLUMN slots;
