DROP TABLE headrace.account_deletions;
DROP FUNCTION headrace.account_deletion_may_move(text, text);
