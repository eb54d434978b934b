-- Only SQLite has tables without a rowid.
select 1;
