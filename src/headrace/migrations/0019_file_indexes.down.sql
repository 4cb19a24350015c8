DROP INDEX headrace.idx_assets_purged;
