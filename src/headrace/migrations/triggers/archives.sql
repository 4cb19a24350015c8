CREATE OR REPLACE TRIGGER tr_archives_state BEFORE UPDATE OF state ON headrace.archives
  FOR EACH ROW WHEN (NOT headrace.archive_may_move(OLD.state, NEW.state))
  EXECUTE FUNCTION headrace.refuse_state_move('state');
