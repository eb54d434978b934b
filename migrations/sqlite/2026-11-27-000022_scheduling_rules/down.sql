alter table database_state drop column scheduling;
