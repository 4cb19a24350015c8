CREATE OR REPLACE TRIGGER tr_tasks_status BEFORE UPDATE OF status ON headrace.tasks
  FOR EACH ROW WHEN (NOT headrace.task_may_move(OLD.status, NEW.status))
  EXECUTE FUNCTION headrace.refuse_state_move('status');
-- The engine's statements set updated_at themselves and never pay for this.
CREATE OR REPLACE TRIGGER tr_tasks_touch BEFORE UPDATE ON headrace.tasks
  FOR EACH ROW WHEN (NEW.updated_at IS NOT DISTINCT FROM OLD.updated_at)
  EXECUTE FUNCTION headrace.touch_updated_at();
CREATE OR REPLACE TRIGGER tr_tasks_forget_password AFTER UPDATE OF status ON headrace.tasks
  FOR EACH ROW WHEN (NEW.task_type IN ('PDF', 'PPT', 'removal.detect') AND NEW.status IN ('SUCCEEDED', 'FAILED', 'CANCELED'))
  EXECUTE FUNCTION headrace.forget_password();
