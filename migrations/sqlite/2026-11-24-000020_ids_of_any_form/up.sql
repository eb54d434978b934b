-- Ids have 1 to 128 bytes. SQLite cannot change a check otherwise, except with a copy of each table. It documents this way
-- for checks that become weaker.
pragma writable_schema = on;
update sqlite_schema set sql = replace(replace(sql,
    'check (length(batch_id) = 64)', 'check (length(batch_id) between 1 and 128)'),
    'check (length(transaction_id) = 64)', 'check (length(transaction_id) between 1 and 128)')
where type = 'table' and name in
    ('batches', 'transactions', 'missing_transactions', 'transaction_lookups', 'operator_actions');
pragma writable_schema = reset;
-- Other connections notice a change of the schema only by this.
create table schema_change (dummy integer) strict;
drop table schema_change;
