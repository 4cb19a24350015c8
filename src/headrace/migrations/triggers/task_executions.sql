CREATE OR REPLACE TRIGGER tr_task_executions_state BEFORE UPDATE OF state ON headrace.task_executions
  FOR EACH ROW WHEN (NOT headrace.execution_may_move(OLD.state, NEW.state))
  EXECUTE FUNCTION headrace.refuse_state_move('state');
CREATE OR REPLACE TRIGGER tr_task_executions_touch BEFORE UPDATE ON headrace.task_executions
  FOR EACH ROW WHEN (NEW.updated_at IS NOT DISTINCT FROM OLD.updated_at)
  EXECUTE FUNCTION headrace.touch_updated_at();
CREATE OR REPLACE TRIGGER tr_task_executions_user_id BEFORE INSERT ON headrace.task_executions
  FOR EACH ROW WHEN (NEW.user_id IS NULL) EXECUTE FUNCTION headrace.fill_execution_owner();
