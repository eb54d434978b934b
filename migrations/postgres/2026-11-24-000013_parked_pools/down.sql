-- Of several lanes of a gas admin, the one with the first open withdrawal is left. The others follow it in order: what was
-- signed for them is stored with their nonces, and their holds begin with their turns.
insert into waiting_holds (batch_seq, held_at, held_reason, cause)
select s.batch_seq, s.held_at, s.held_reason, 'OPERATOR' from lanes s
where s.by_pool and s.held_at is not null and exists (
    select 1 from lanes o where o.service_id = s.service_id and o.created_at < s.created_at);

update lanes set lane = -1, ended = (select sum(o.ended) from lanes o where o.service_id = lanes.service_id)
where by_pool and not exists (
    select 1 from lanes o where o.service_id = lanes.service_id and (
        o.created_at < lanes.created_at
        or (lanes.created_at is null and (o.created_at is not null or o.lane < lanes.lane))));
delete from lanes where by_pool and lane >= 0;
update lanes set lane = 0 where lane = -1;

drop index withdrawals_open_by_pool;
alter table lanes drop column by_pool;
alter table lanes drop column pool_parked;
