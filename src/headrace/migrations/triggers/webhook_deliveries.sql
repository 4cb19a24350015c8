CREATE OR REPLACE TRIGGER tr_webhook_deliveries_status BEFORE UPDATE OF status ON headrace.webhook_deliveries
  FOR EACH ROW WHEN (NOT headrace.delivery_may_move(OLD.status, NEW.status))
  EXECUTE FUNCTION headrace.refuse_state_move('status');
