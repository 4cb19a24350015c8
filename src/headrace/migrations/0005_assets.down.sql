DROP TABLE headrace.assets;
