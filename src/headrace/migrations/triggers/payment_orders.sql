CREATE OR REPLACE TRIGGER tr_payment_orders_status BEFORE UPDATE OF status ON headrace.payment_orders
  FOR EACH ROW WHEN (NOT headrace.payment_order_may_move(OLD.status, NEW.status))
  EXECUTE FUNCTION headrace.refuse_state_move('status');
CREATE OR REPLACE TRIGGER tr_payment_orders_touch BEFORE UPDATE ON headrace.payment_orders
  FOR EACH ROW WHEN (NEW.updated_at IS NOT DISTINCT FROM OLD.updated_at)
  EXECUTE FUNCTION headrace.touch_updated_at();
