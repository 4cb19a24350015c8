CREATE OR REPLACE TRIGGER tr_audit_events_refuse_rewriting BEFORE UPDATE OR DELETE ON headrace.audit_events
  FOR EACH ROW EXECUTE FUNCTION headrace.refuse_rewriting();
CREATE OR REPLACE TRIGGER tr_audit_events_refuse_truncate BEFORE TRUNCATE ON headrace.audit_events
  FOR EACH STATEMENT EXECUTE FUNCTION headrace.refuse_rewriting();
-- Not what the time is compared with costs, but the call: only what is not of now calls it.
CREATE OR REPLACE TRIGGER tr_audit_events_time BEFORE INSERT ON headrace.audit_events
  FOR EACH ROW
  WHEN (NEW.created_at NOT BETWEEN clock_timestamp() - interval '1 minute' AND clock_timestamp() + interval '1 minute')
  EXECUTE FUNCTION headrace.refuse_other_time();
-- PostgreSQL passes no TRUNCATE trigger on to the partitions that are there.
SELECT headrace.adopt_partition(inhparent::regclass, inhrelid::regclass) FROM pg_inherits WHERE inhparent = 'headrace.audit_events'::regclass;
