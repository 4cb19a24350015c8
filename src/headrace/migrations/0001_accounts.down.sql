DROP TABLE headrace.account_deletions;
DROP TABLE headrace.login_throttles;
DROP TABLE headrace.api_keys;
DROP TABLE headrace.sessions;
DROP TABLE headrace.users;
