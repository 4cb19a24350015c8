DROP TABLE headrace.notifications;
