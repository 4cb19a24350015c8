-- The end of a task deletes the password of its document, in that transaction: by a trigger and not by a follower, so that
-- programs of earlier releases do so, too.
CREATE OR REPLACE FUNCTION headrace.forget_password() RETURNS trigger
LANGUAGE plpgsql
SET search_path = pg_catalog, pg_temp
AS $$
BEGIN
  -- The trigger outlives the table after a migration down.
  IF to_regclass('headrace.removal_passwords') IS NOT NULL THEN
    DELETE FROM headrace.removal_passwords WHERE task_id = NEW.id;
  END IF;
  RETURN NULL;
END
$$;
COMMENT ON FUNCTION headrace.forget_password() IS 'Trigger: deletes what opens the document of a task that ends.';
