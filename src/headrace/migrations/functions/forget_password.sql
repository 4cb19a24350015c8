-- Whoever ends a task forgets the password of its document, in that transaction: by the database and not by a follower, so that
-- programs which were started before there were passwords do so, too.
CREATE OR REPLACE FUNCTION headrace.forget_password() RETURNS trigger
LANGUAGE plpgsql
SET search_path = pg_catalog, pg_temp
AS $$
BEGIN
  -- The trigger outlives the table where somebody goes back to the schema before it.
  IF to_regclass('headrace.removal_passwords') IS NOT NULL THEN
    DELETE FROM headrace.removal_passwords WHERE task_id = NEW.id;
  END IF;
  RETURN NULL;
END
$$;
COMMENT ON FUNCTION headrace.forget_password() IS 'Trigger: deletes what opens the document of a task that ends.';
