-- Lists of one user's notifications, newest first, and what came after the one that was seen last.
CREATE INDEX idx_notifications_user_id ON headrace.notifications (user_id, id DESC);
