DROP TABLE headrace.login_throttles;
DROP TABLE headrace.api_keys;
DROP TABLE headrace.sessions;
DROP TABLE headrace.users;
DROP FUNCTION headrace.refuse_deleting_system_user();
