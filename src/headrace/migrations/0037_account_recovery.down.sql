ALTER TABLE headrace.users DROP COLUMN second_factor_at;
DROP TABLE headrace.recovery_codes;
DROP TABLE headrace.second_factors;
DROP TABLE headrace.account_links;
