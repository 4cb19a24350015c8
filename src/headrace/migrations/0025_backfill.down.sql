DROP PROCEDURE headrace.backfill(regclass, text, text, integer);
