-- Whether a month may leave is decided here and nowhere else, for every role: what the application says does not count.
CREATE OR REPLACE FUNCTION headrace.why_month_stays(parent text, month date) RETURNS text
LANGUAGE plpgsql STABLE
SET search_path = pg_catalog, pg_temp
AS $$
DECLARE
  partition text := format('headrace.%I', parent || to_char(month, '"_y"YYYY"m"MM'));
  reason    text := headrace.why_month_is_young(parent, month);
BEGIN
  IF reason IS NOT NULL THEN
    RETURN reason;
  END IF;
  CASE parent
    WHEN 'audit_events' THEN
      -- Seals are made from what is in the table: an event that left before its seal would never get one.
      EXECUTE format($sql$
        SELECT 'an event of it is not sealed yet' FROM %s
        WHERE seq > (SELECT coalesce(max(last_seq), 0) FROM headrace.audit_seals WHERE month = $1)
        LIMIT 1
      $sql$, partition) INTO reason USING month;
    WHEN 'usage_ledger' THEN
      -- `total = left + held + committed` is proved from the ledger, for as long as an entitlement can be used.
      EXECUTE format($sql$
        SELECT 'it explains an entitlement that has not ended' FROM %s AS ledger
        JOIN headrace.entitlements ON entitlements.id = ledger.entitlement_id
        WHERE entitlements.period_end > now()
        LIMIT 1
      $sql$, partition) INTO reason;
    WHEN 'webhook_deliveries' THEN
      -- An endpoint may be retried for days, and a month that is still written to cannot be archived.
      EXECUTE format($sql$
        SELECT 'a delivery of it is still under way' FROM %s
        WHERE status = 'PENDING' OR status IN ('FAILED', 'RETRYING') AND next_retry_at IS NOT NULL
        LIMIT 1
      $sql$, partition) INTO reason;
  END CASE;
  RETURN reason;
END
$$;
COMMENT ON FUNCTION headrace.why_month_stays(text, date) IS 'Why a month of a table may not be retired; null when it may. For the functions that retire months.';
REVOKE EXECUTE ON FUNCTION headrace.why_month_stays(text, date) FROM PUBLIC;
