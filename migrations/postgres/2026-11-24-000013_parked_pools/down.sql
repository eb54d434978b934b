drop index withdrawals_open_by_pool;
alter table lanes drop column by_pool;
alter table lanes drop column pool_parked;
