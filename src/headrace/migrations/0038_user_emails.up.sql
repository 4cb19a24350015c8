-- headrace: no-transaction
-- Users of an e-mail address, for a forgotten password. Addresses are not unique.
DROP INDEX CONCURRENTLY IF EXISTS headrace.idx_users_email;
CREATE INDEX CONCURRENTLY idx_users_email ON headrace.users (lower(email)) WHERE email IS NOT NULL;
