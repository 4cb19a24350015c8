DROP FUNCTION headrace.make_month_ahead(regclass);
DROP TABLE headrace.retention_runs, headrace.archives;
DROP FUNCTION headrace.archive_may_move(text, text);
