-- A user can return the units of a result that is not good, within a day and a few times a month.

ALTER TABLE headrace.removals ADD COLUMN returned_at timestamptz;
COMMENT ON COLUMN headrace.removals.returned_at IS 'When the owner returned the result as not good, and got the units back.';
