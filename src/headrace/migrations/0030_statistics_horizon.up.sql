-- Which transactions were open when a minute was measured: what they commit later is counted later.

ALTER TABLE headrace.statistics_minutes ADD COLUMN oldest_xid bigint;
ALTER TABLE headrace.statistics_minutes ADD COLUMN next_xid bigint;
COMMENT ON COLUMN headrace.statistics_minutes.oldest_xid IS 'The oldest transaction that was open when the minute was measured.';
COMMENT ON COLUMN headrace.statistics_minutes.next_xid IS 'The first transaction that had not begun when the minute was measured.';
