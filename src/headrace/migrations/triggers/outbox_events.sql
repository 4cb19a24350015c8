CREATE OR REPLACE TRIGGER tr_outbox_events_status BEFORE UPDATE OF status ON headrace.outbox_events
  FOR EACH ROW WHEN (NOT headrace.outbox_event_may_move(OLD.status, NEW.status))
  EXECUTE FUNCTION headrace.refuse_state_move('status');
