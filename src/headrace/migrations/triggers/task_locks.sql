CREATE OR REPLACE TRIGGER tr_task_locks_state BEFORE UPDATE OF state ON headrace.task_locks
  FOR EACH ROW WHEN (NOT headrace.lock_may_move(OLD.state, NEW.state))
  EXECUTE FUNCTION headrace.refuse_state_move('state');
CREATE OR REPLACE TRIGGER tr_task_locks_touch BEFORE UPDATE ON headrace.task_locks
  FOR EACH ROW WHEN (NEW.updated_at IS NOT DISTINCT FROM OLD.updated_at)
  EXECUTE FUNCTION headrace.touch_updated_at();
