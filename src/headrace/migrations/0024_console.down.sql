DROP TABLE headrace.bulk_actions;
DROP TABLE headrace.statistics_queues;
DROP TABLE headrace.statistics_minutes;
