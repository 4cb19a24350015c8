DROP INDEX headrace.idx_notifications_user_id;
