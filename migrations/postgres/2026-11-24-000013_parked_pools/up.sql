-- The last attempt of the batch found that only the pool of its withdrawal is parked: batches of other pools may
-- overtake it.
alter table lanes add column pool_parked boolean not null default false;
-- The service has had several lanes because of that, each with the first open batch of a pool.
alter table lanes add column by_pool boolean not null default false;

-- The open withdrawals of each pool of a gas admin, in order.
create index withdrawals_open_by_pool on withdrawals (service_id, pool, batch_seq) where list_state = 'OPEN';
