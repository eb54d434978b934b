delete from operator_actions where target in ('token', 'webhook', 'database');
pragma writable_schema = on;
update sqlite_schema set sql = replace(sql,
    '''all_services'', ''instance'', ''token'', ''webhook'', ''database'')', '''all_services'', ''instance'')')
where type = 'table' and name in ('operator_actions');
pragma writable_schema = reset;
create table schema_change (dummy integer) strict;
drop table schema_change;
alter table operator_actions drop column target_id;
