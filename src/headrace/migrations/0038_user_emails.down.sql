DROP INDEX headrace.idx_users_email;
