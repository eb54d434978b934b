-- The id of a token or a webhook.
alter table operator_actions add column target_id text;
-- Weaker, as in 2026-11-24-000020.
pragma writable_schema = on;
update sqlite_schema set sql = replace(sql, '''all_services'', ''instance'')',
    '''all_services'', ''instance'', ''token'', ''webhook'', ''database'')')
where type = 'table' and name in ('operator_actions');
pragma writable_schema = reset;
create table schema_change (dummy integer) strict;
drop table schema_change;
