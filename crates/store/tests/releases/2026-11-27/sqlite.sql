-- begin_lookups_again
update transaction_lookups set lookups = 0, next_lookup_at = 0
where (service_id, signer, transaction_id) in (
select m.service_id, m.signer, m.transaction_id
from (select ? as transaction_id, ? as batch_seq) as x join missing_transactions m
on m.transaction_id = x.transaction_id and m.batch_seq = x.batch_seq
where m.found_at is null and m.invalid_seq is not null and m.asked_at = 0)

-- change_claimant
update service_id_claims set claimant = ?, epoch = service_id_claims.epoch + 1
from (select ? as service_id) as x where service_id_claims.service_id = x.service_id
returning service_id_claims.service_id, service_id_claims.epoch

-- clear_lanes
update lanes
set batch_seq = null, batch_id = null, created_at = null, position = null,
blocker_seq = null, submitted = false, dlt_status = null, commit_proven = false,
earlier_may_arrive = false, invalid_reported = false, attempts = 0,
submitted_at = null, since = null, checked_at = null, next_try_at = null, last_error = null,
delays = 0, delayed_since = null, refusals = 0, not_accepted = 0,
held_at = null, held_reason = null, held_until_decision = false, pool_parked = false, ended = lanes.ended + 1, last_committed_seq = case
when x.committed then lanes.batch_seq else lanes.last_committed_seq end
from (select ? as service_id, ? as lane, ? as batch_seq, ? as committed) as x
where lanes.service_id = x.service_id and lanes.lane = x.lane
and lanes.batch_seq = x.batch_seq
returning lanes.service_id, lanes.ended

-- count_ended
update lanes set ended = lanes.ended + x.count
from (select ? as service_id, ? as count) as x where lanes.service_id = x.service_id and lanes.lane = (
select min(s.lane) from lanes s where s.service_id = x.service_id)

-- count_ended_of_lanes
select s.service_id, s.ended from (select ? as service_id) as x join lanes s on s.service_id = x.service_id

-- count_full_queue
select
(select count(*) from waiting_batches w
where w.service_id = ? and w.position is null) as incomplete,
(select count(*) from waiting_holds h where h.batch_seq > 0 and (
select w.service_id from waiting_batches w where w.batch_seq = h.batch_seq
) = ?) + (select count(*) from lanes s
where s.service_id = ? and s.busy and s.held_at is not null) as held,
(select count(*) from lanes s
where s.service_id = ? and s.busy and s.held_at is null and ((not s.submitted and s.dlt_status = 'DELAYED'))) as delayed

-- count_incomplete
select count(*) as count from waiting_batches w
where w.service_id > '' and w.position is null

-- count_incomplete_of_services
select x.service_id, (
select count(*) from waiting_batches w
where w.service_id = x.service_id and w.position is null) as count
from (select ? as service_id) as x

-- count_missing_of_signers
select x.number, (
select count(*) from missing_transactions m
where m.signer = x.signer and m.found_at is null) as count
from (select ? as number, ? as signer) as x

-- count_open_of_services
select cast(coalesce(sum(r.open), 0) as bigint) as open,
count(case when r.open >= ? then 1 end) as full_queues
from (
select s.added - cast(sum(l.ended) as bigint) as open
from services s join lanes l on l.service_id = s.service_id
where s.service_id > '' and l.service_id > ''
group by s.service_id, s.added) as r

-- count_registration
update database_state set registrations = registrations + 1 where id = 1
returning registrations

-- count_send
update instances set renewals = renewals + 1 where instance_id = ?
returning renewals

-- count_signers_that_miss
select count(*) as signers, coalesce(max(r.missing), 0) as most from (
select count(*) as missing from missing_transactions m
where m.found_at is null and m.signer >= ? group by m.signer) as r

-- end_batches
update batches
set ended_at = x.ended_at, dlt_status = x.dlt_status, attempts = x.attempts,
submitted_at = x.submitted_at, checked_at = x.checked_at, last_error = x.last_error
from (select ? as batch_seq, ? as ended_at, ? as dlt_status, ? as attempts, ? as submitted_at, ? as checked_at, ? as last_error) as x
where batches.seq = x.batch_seq and batches.ended_at is null
returning batches.seq,
(select count(*) from withdrawals w where w.batch_seq = batches.seq) > 0
as is_of_withdrawal

-- end_holds_of_arrived
delete from waiting_holds
where batch_seq in (select x.batch_seq from (select ? as batch_seq) as x) and cause = 'MISSING_TRANSACTION'

-- expire_all_instances
update instances set name = null, expiry_1 = 0, expiry_2 = 0

-- find_arrived_batches
select b.seq as batch_seq
from (select ? as transaction_id) as x join transactions t on substr(t.transaction_id, 1, 7) = substr(x.transaction_id, 1, 7)
and t.transaction_id = x.transaction_id join batches b on b.seq = t.batch_seq
where b.dlt_status = 'COMMITTED' or b.ended_at is null and coalesce(
(select w.position from waiting_batches w where w.batch_seq = b.seq),
(select s.position from lanes s
where s.service_id = b.service_id and s.batch_seq = b.seq)) is not null

-- find_batches_that_ask
select m.batch_seq, m.service_id from missing_transactions m
where m.transaction_id = ? and m.batch_seq > ? and m.found_at is null
and m.invalid_seq is not null and m.asked_at > 0
order by m.transaction_id, m.batch_seq limit ?

-- find_batches_that_miss
select m.batch_seq, m.service_id from missing_transactions m
where m.transaction_id = ? and m.found_at is null limit ?

-- find_changed_blockers
select c.batch_seq, c.changed_at, b.service_id, b.ended_at is not null as ended
from changed_blockers c join batches b on b.seq = c.batch_seq
where c.batch_seq > ? order by c.batch_seq limit ?

-- find_conflicts
select x.number, d.batch_seq, d.position,
(select h.ends_until from halts h where h.batch_seq = d.batch_seq) as ends_until
from (select ? as number, ? as service_id, ? as address, ? as kind, ? as position) as x join declared_addresses d
on d.service_id = x.service_id and d.address = x.address and d.kind = x.kind
and d.position = (
select n.position from declared_addresses n
where n.service_id = x.service_id and n.address = x.address
and n.kind = x.kind and n.position < x.position
order by n.position desc limit 1)

-- find_declared
select p.batch_seq, p.declared_access
from (select ? as batch_seq) as x join batch_payloads p on p.batch_seq = x.batch_seq

-- find_dependencies
select x.number, b.seq, b.batch_id, b.service_id, b.dlt_status,
coalesce(
(select w.position from waiting_batches w where w.batch_seq = b.seq),
(select s.position from lanes s
where s.service_id = b.service_id and s.batch_seq = b.seq)) as position,
(select count(*) from halts h where h.batch_seq = b.seq) > 0 as halted,
(select h.ends_until from halts h where h.batch_seq = b.seq) as ends_until
from (select ? as number, ? as transaction_id) as x join transactions t on substr(t.transaction_id, 1, 7) = substr(x.transaction_id, 1, 7)
and t.transaction_id = x.transaction_id join batches b on b.seq = t.batch_seq

-- find_dependents
select w.blocker_seq, w.batch_seq, w.service_id, w.position
from (select ? as batch_seq) as x join waiting_batches w on w.blocker_seq = x.batch_seq
limit ?

-- find_dependents_in_lanes
select s.blocker_seq, s.batch_seq, s.service_id, s.position
from (select ? as service_id) as x join lanes s on s.service_id = x.service_id
where s.busy and s.blocker_seq is not null

-- find_due_lookups
select l.service_id, l.signer, l.transaction_id, l.lookups from transaction_lookups l
where l.signer = ? and l.next_lookup_at <= ? and (select c.claimant from service_id_claims c where c.service_id = l.service_id) = ?
order by l.signer, l.next_lookup_at limit ?

-- find_ending_halts
select h.batch_seq, h.service_id, h.position, h.ends_until from halts h
where h.service_id = ? and h.ends_until is not null and h.ends_until < ?
order by h.service_id, h.ends_until limit ?

-- find_expired_instances
select i.instance_id, i.expiry_2 <= cast(unixepoch('subsec') * 1000000 as integer) as fully_expired from instances i
where i.expiry_1 <= cast(unixepoch('subsec') * 1000000 as integer)

-- find_following_in_lanes
select s.batch_seq, coalesce(s.position, s.created_at) as position, s.batch_id, s.submitted,
s.earlier_may_arrive, s.held_until_decision
from lanes s
where s.service_id = ? and s.busy and coalesce(s.position, s.created_at) > ?
and coalesce(s.position, s.created_at) <= ?

-- find_fullest_queues
select s.service_id, s.added - cast(sum(l.ended) as bigint) as open
from services s join lanes l on l.service_id = s.service_id
where s.service_id > '' and l.service_id > ''
group by s.service_id, s.added
having s.added - sum(l.ended) >= ?
order by open desc, s.service_id desc
limit ?

-- find_halts_without_policy
select h.batch_seq, h.service_id, h.position, h.ends_until from halts h
where h.service_id = ? and h.origin = 'COMMAND' order by h.service_id limit ?

-- find_known_transactions
select m.batch_seq, m.transaction_id, m.found_at is not null as found, m.invalid_seq
from (select ? as batch_seq) as x join missing_transactions m on m.batch_seq = x.batch_seq
where m.found_at is not null or m.invalid_seq is not null

-- find_lanes
select s.service_id, s.lane, s.batch_seq, s.batch_id
from (select ? as service_id) as x join lanes s on s.service_id = x.service_id
where s.busy

-- find_last_halt
select x.number, h.batch_seq, h.service_id, h.position, h.ends_until
from (select ? as number, ? as service_id, ? as position, ? as own) as x join halts h on h.service_id = x.service_id and h.position = (
select n.position from halts n
where n.service_id = x.service_id and n.position < x.position
and coalesce(n.ends_until, x.own) >= x.own
order by n.service_id desc, n.position desc limit 1)

-- find_lost_attempts
select s.service_id, s.batch_id, s.attempts, s.epoch
from (select ? as service_id) as x join lanes s on s.service_id = x.service_id
where ((s.submitted and s.dlt_status is null))

-- find_missed_batches
select x.batch_seq from (select ? as batch_seq) as x
where (select count(*) from (
select 1 from missing_transactions m where m.found_at is null limit 1) as r) > 0
and exists (
select 1 from transactions t
join missing_transactions m on m.transaction_id = t.transaction_id
where t.batch_seq = x.batch_seq and m.found_at is null)

-- find_missing_dependents
select m.batch_seq, m.service_id
from transactions t join batches b on b.seq = t.batch_seq
join missing_transactions m on m.transaction_id = t.transaction_id
join waiting_batches w on w.batch_seq = m.batch_seq
where t.batch_seq = ? and m.found_at is null and w.position is null
and (m.invalid_seq is null or b.dlt_status is null or b.dlt_status <> 'INVALID')
limit ?

-- find_missing_of
select m.transaction_id from missing_transactions m
where m.batch_seq = ? and m.found_at is null

-- find_newest_in_lanes
select x.number,
(select s.batch_seq from lanes s
where s.service_id = x.service_id and s.busy and s.position < x.position
order by s.position desc limit 1) as batch_seq,
(select s.position from lanes s
where s.service_id = x.service_id and s.busy and s.position < x.position
order by s.position desc limit 1) as position
from (select ? as number, ? as service_id, ? as position) as x

-- find_newest_waiting
select x.number,
(select w.batch_seq from waiting_batches w
where w.service_id = x.service_id and w.position is not null and w.position < x.position
order by w.service_id desc, w.position desc limit 1) as batch_seq,
(select w.position from waiting_batches w
where w.service_id = x.service_id and w.position is not null and w.position < x.position
order by w.service_id desc, w.position desc limit 1) as position
from (select ? as number, ? as service_id, ? as position) as x

-- find_open_behind
select b.seq, b.created_at from batches b
where b.service_id = ? and b.created_at > ? and b.created_at <= ? and b.ended_at is null
order by b.service_id, b.created_at limit ?

-- find_other_conflicts
select x.number, d.batch_seq, d.position,
(select h.ends_until from halts h where h.batch_seq = d.batch_seq) as ends_until
from (select ? as number, ? as service_id, ? as address, ? as kind, ? as position) as x join declared_addresses d
on d.service_id = x.service_id and d.address = x.address and d.kind = x.kind
and d.position = (
select n.position from declared_addresses n
where n.service_id = x.service_id and n.address = x.address
and n.kind = x.kind and n.position < x.position
and coalesce(
(select h.ends_until from halts h where h.batch_seq = n.batch_seq),
x.position) >= x.position
order by n.position desc limit 1)

-- find_other_lanes
select distinct s.service_id from lanes s
where s.service_id > ? and s.busy and s.position is null
order by s.service_id limit ?

-- find_overdue_batches
select m.batch_seq, m.service_id from missing_transactions m
where m.found_at is null and not m.overdue and m.since <= ? order by m.since limit ?

-- find_signers_to_look_up
with recursive signers(signer) as (
select (select l.signer from transaction_lookups l where l.signer >= ?
order by l.signer, l.next_lookup_at limit 1)
union all
select (select l.signer from transaction_lookups l where l.signer > r.signer
order by l.signer, l.next_lookup_at limit 1)
from signers r where r.signer is not null
)
select r.signer from signers r where r.signer is not null limit ?

-- find_stored
select b.service_id, b.batch_id, p.serialized_batch
from (select ? as service_id, ? as batch_id) as x
join batches b on b.batch_id = x.batch_id and b.service_id = x.service_id
join batch_payloads p on p.batch_seq = b.seq

-- find_takeable
select c.service_id,
case when i.expiry_1 > cast(unixepoch('subsec') * 1000000 as integer) then c.claimant end as live_claimant
from (select ? as service_id) as x join service_id_claims c on c.service_id = x.service_id
left join instances i on i.instance_id = c.claimant
where c.claimant is null or c.claimant <> ? or i.expiry_1 <= cast(unixepoch('subsec') * 1000000 as integer)

-- find_transaction_holders
select x.number, b.batch_id
from (select ? as number, ? as service_id, ? as transaction_id) as x
join transactions t on substr(t.transaction_id, 1, 7) = substr(x.transaction_id, 1, 7)
and t.transaction_id = x.transaction_id
join batches b on b.seq = t.batch_seq
where b.service_id = x.service_id
and (b.dlt_status is null or b.dlt_status = 'COMMITTED')

-- find_unneeded_lookups
select x.number from (select ? as service_id, ? as signer, ? as transaction_id, ? as number) as x
where (select count(*) from (
select 1 from missing_transactions m
where m.signer = x.signer and m.transaction_id = x.transaction_id
and m.found_at is null limit 1) as r) = 0

-- find_unsendable
select b.seq, b.service_id, b.batch_id, s.attempts,
(select o.service_id from batches o where o.seq = x.blocker_seq) as blocker_service_id,
coalesce(b.seq <= (select d.restored_seq from database_state d where d.id = 1), false)
as restored
from (select ? as batch_seq, ? as blocker_seq) as x join batches b on b.seq = x.batch_seq
left join lanes s on s.service_id = b.service_id and s.batch_seq = b.seq
where b.ended_at is null

-- find_waited_for
select x.transaction_id from (select ? as transaction_id) as x
where (select count(*) from (
select 1 from missing_transactions m
where m.transaction_id = x.transaction_id and m.found_at is null limit 1) as r) > 0

-- find_waiting_in_order
select w.batch_seq, w.position from waiting_batches w
where w.service_id = ? and w.position is not null and w.position > ? and w.position <= ?
order by w.service_id, w.position limit ?

-- find_waiting_of
select w.blocker_seq, w.batch_seq, w.service_id, w.position
from waiting_batches w
where w.blocker_seq = ? and (w.position, w.batch_seq) > (?, ?)
order by w.blocker_seq, w.position, w.batch_seq limit ?

-- first_free
select w.batch_seq, w.position, w.blocker_seq, w.depends_on_blocker, b.batch_id, b.created_at
from waiting_batches w join batches b on b.seq = w.batch_seq
where w.service_id = ? and w.position is not null and w.blocker_seq is null
order by w.service_id, w.position limit ?

-- first_free_position
select w.position from waiting_batches w
where w.service_id = ? and w.position is not null and w.blocker_seq is null
order by w.service_id, w.position limit 1

-- first_halt
select h.batch_seq, h.service_id, h.position, h.ends_until from halts h
where h.service_id = ? order by h.service_id, h.position limit 1

-- first_waiting
select w.batch_seq, w.position, w.blocker_seq, w.depends_on_blocker, b.batch_id, b.created_at
from waiting_batches w join batches b on b.seq = w.batch_seq
where w.service_id = ? and w.position is not null
order by w.service_id, w.position limit ?

-- forget_new_services
delete from new_services where service_id in (select x.service_id from (select ? as service_id) as x)

-- held_services
select count(x.service_id) as count from (
select s.service_id from lanes s where s.busy and s.held_at is not null
union
select (select w.service_id from waiting_batches w
where w.batch_seq = h.batch_seq
and (w.position is null or h.cause = 'MISSING_TRANSACTION'))
from waiting_holds h where h.batch_seq > 0
union
select n.service_id from account_nonces n
where n.service_id > '' and n.pool_withdrawal_id = ''
and (select w.list_state from withdrawals w
where w.seq = n.withdrawal_seq and (
select b.dlt_status from batches b where b.seq = w.batch_seq) is not null) = 'OPEN'
) as x

-- hold_overdue
insert into waiting_holds (batch_seq, held_at, held_reason, cause)
select batch_seq, held_at, held_reason, 'MISSING_TRANSACTION' from (select ? as batch_seq, ? as held_at, ? as held_reason) as x where true
on conflict (batch_seq) do nothing
returning batch_seq, held_reason

-- insert_address_lengths
insert into address_lengths (service_id, length, since)
select service_id, length, since from (select ? as service_id, ? as length, ? as since) as x

-- insert_attempts
insert into submission_attempts
(batch_seq, attempt, submitted_at, ended_at, outcome, error, next_try_at)
select batch_seq, attempt, submitted_at, ended_at, outcome, error, next_try_at
from (select ? as batch_seq, ? as attempt, ? as submitted_at, ? as ended_at, ? as outcome, ? as error, ? as next_try_at) as x where true
on conflict (batch_seq, attempt) do update set
ended_at = excluded.ended_at,
outcome = submission_attempts.outcome || ', then ' || excluded.outcome,
error = coalesce(excluded.error, submission_attempts.error)

-- insert_batches
insert into batches (service_id, batch_id, created_at)
select service_id, batch_id, created_at from (select ? as service_id, ? as batch_id, ? as created_at) as x where true
order by service_id, created_at
returning seq, service_id, created_at

-- insert_changed_blockers
insert into changed_blockers (batch_seq, changed_at)
select batch_seq, changed_at from (select ? as batch_seq, ? as changed_at) as x where true order by batch_seq
on conflict (batch_seq) do update set changed_at = changed_blockers.changed_at + 1

-- insert_claims
insert into service_id_claims (service_id) select service_id from (select ? as service_id) as x where true
on conflict do nothing

-- insert_declared_addresses
insert into declared_addresses (service_id, address, kind, position, batch_seq)
select service_id, address, kind, position, batch_seq from (select ? as service_id, ? as address, ? as kind, ? as position, ? as batch_seq) as x

-- insert_event_group
insert into event_groups (at, instance, batch_seqs) values (?, nullif(?, ''), ?)

-- insert_events
insert into batch_events (batch_seq, group_seq, at, position, attempt, kind, state, detail)
select x.batch_seq, (select max(g.seq) from event_groups g), x.at, x.position,
x.attempt, x.kind, x.state, x.detail
from (select ? as batch_seq, ? as at, ? as position, ? as attempt, ? as kind, ? as state, ? as detail) as x

-- insert_halts
insert into halts (batch_seq, service_id, position, since, ends_until, origin, positioned)
select batch_seq, service_id, position, since, ends_until, origin, true from (select ? as batch_seq, ? as service_id, ? as position, ? as since, ? as ends_until, ? as origin) as x

-- insert_halts_in_order
insert into halts (batch_seq, service_id, position, since, origin, positioned)
select b.seq, b.service_id, b.created_at, x.since, x.origin, false
from (select ? as batch_seq, ? as origin, ? as since) as x join batches b on b.seq = x.batch_seq

-- insert_instance
insert into instances (instance_id, name, expiry_1, expiry_2)
select x.instance_id, x.name, t.now + x.expiry_1, t.now + x.expiry_2
from (select ? as instance_id, ? as name, ? as expiry_1, ? as expiry_2) as x cross join (select cast(unixepoch('subsec') * 1000000 as integer) as now) as t where true
on conflict (name) do nothing

-- insert_lanes
insert into lanes (service_id, lane) select service_id, 0 from (select ? as service_id) as x where true
on conflict do nothing

-- insert_lookups
insert into transaction_lookups (service_id, signer, transaction_id, since)
select distinct m.service_id, m.signer, m.transaction_id, x.since
from (select ? as transaction_id, ? as batch_seq, ? as since) as x join missing_transactions m
on m.transaction_id = x.transaction_id and m.batch_seq = x.batch_seq
where m.found_at is null
on conflict (service_id, signer, transaction_id) do nothing

-- insert_missing_transactions
insert into missing_transactions
(transaction_id, batch_seq, service_id, since, invalid_seq, signer)
select x.transaction_id, x.batch_seq, x.service_id, x.since, x.invalid_seq,
case when length(x.signer) > 0 then x.signer else coalesce(
(select m.signer from missing_transactions m
where m.batch_seq = x.batch_seq limit 1), x.signer) end
from (select ? as transaction_id, ? as batch_seq, ? as service_id, ? as since, ? as invalid_seq, ? as signer) as x where true
on conflict (transaction_id, batch_seq) do update
set invalid_seq = excluded.invalid_seq, asked_at = 0
where missing_transactions.found_at is null
and coalesce(missing_transactions.invalid_seq, 0) < coalesce(excluded.invalid_seq, 0)

-- insert_new_services
insert into new_services (service_id, signer)
select service_id, signer from (select ? as service_id, ? as signer) as x where true
on conflict do nothing

-- insert_operator_actions
insert into operator_actions (
acted_at, operator, source, instance, verb, target, service_id, batch_id, attempt,
target_instance, reason, state_before, state_after)
select x.acted_at, x.operator, x.source, x.instance, x.verb, x.target, x.service_id,
x.batch_id, x.attempt, x.target_instance, x.reason, x.state_before, x.state_after
from (select ? as acted_at, ? as operator, ? as source, ? as instance, ? as verb, ? as target, ? as service_id, ? as batch_id, ? as attempt, ? as target_instance, ? as reason, ? as state_before, ? as state_after) as x

-- insert_payloads
insert into batch_payloads (batch_seq, declared_access, serialized_batch)
select batch_seq, declared_access, serialized_batch from (select ? as batch_seq, ? as declared_access, ? as serialized_batch) as x

-- insert_receipts
insert into transaction_receipts
(batch_seq, position, transaction_id, error_message, error_data)
select batch_seq, position, transaction_id, error_message, error_data from (select ? as batch_seq, ? as position, ? as transaction_id, ? as error_message, ? as error_data) as x

-- insert_transactions
insert into transactions (batch_seq, position, transaction_id)
select batch_seq, position, transaction_id from (select ? as batch_seq, ? as position, ? as transaction_id) as x

-- insert_unplaced_batches
insert into waiting_batches (batch_seq, service_id)
select batch_seq, service_id from (select ? as batch_seq, ? as service_id) as x

-- insert_waiting_batches
insert into waiting_batches
(batch_seq, service_id, position, blocker_seq, depends_on_blocker)
select batch_seq, service_id, position, blocker_seq, depends_on_blocker from (select ? as batch_seq, ? as blocker_seq, ? as depends_on_blocker, ? as service_id, ? as position) as x

-- install_in_lanes
update lanes
set batch_seq = x.batch_seq, batch_id = x.batch_id, created_at = x.created_at,
position = x.position, blocker_seq = x.blocker_seq
from (select ? as service_id, ? as lane, ? as batch_seq, ? as batch_id, ? as created_at, ? as position, ? as blocker_seq) as x
where lanes.service_id = x.service_id and lanes.lane = x.lane and lanes.batch_seq is null
returning lanes.service_id, lanes.lane, lanes.batch_id, lanes.batch_seq, coalesce(
lanes.batch_seq <= (select d.restored_seq from database_state d where d.id = 1),
false) as restored,
(select count(*) from waiting_holds w where w.batch_seq = lanes.batch_seq) > 0 as held

-- install_next_heads
update lanes
set (batch_seq, batch_id, created_at) = (
select n.seq, n.batch_id, n.created_at from batches n
where n.service_id = lanes.service_id
and n.created_at > lanes.created_at and n.ended_at is null
order by n.service_id, n.created_at limit 1),
submitted = false, dlt_status = null, commit_proven = false,
earlier_may_arrive = false, invalid_reported = false, attempts = 0,
submitted_at = null, since = null, checked_at = null, next_try_at = null, last_error = null,
delays = 0, delayed_since = null, refusals = 0, not_accepted = 0,
held_at = null, held_reason = null, held_until_decision = false, pool_parked = false, ended = lanes.ended + 1, last_committed_seq = case
when x.committed then lanes.batch_seq else lanes.last_committed_seq end
from (select ? as service_id, ? as lane, ? as batch_seq, ? as committed) as x
where lanes.service_id = x.service_id and lanes.lane = x.lane
and lanes.batch_seq = x.batch_seq
returning lanes.service_id, lanes.lane, lanes.batch_id, coalesce(
lanes.batch_seq <= (select d.restored_seq from database_state d where d.id = 1),
false) as restored, lanes.batch_seq,
(select count(*) from waiting_holds w where w.batch_seq = lanes.batch_seq) > 0 as held,
lanes.ended

-- last_free_position
select w.position from waiting_batches w
where w.service_id = ? and w.position is not null and w.blocker_seq is null
order by w.service_id desc, w.position desc limit 1

-- load_address_lengths
select l.service_id, l.length, l.since
from (select ? as service_id) as x join address_lengths l on l.service_id = x.service_id

-- load_halt
select h.batch_seq, h.service_id, h.position, h.ends_until, h.positioned from halts h
where h.batch_seq = ?

-- load_lanes
select s.lane, s.busy, s.held_at is not null as is_held from lanes s
where s.service_id = ? order by s.service_id, s.lane

-- load_lookup_lag
select count(*) as waiting, min(r.since) as since from (
select l.since from transaction_lookups l where l.lookups = 0 and l.since > 0
order by l.since limit ?) as r

-- load_positions
select w.batch_seq, w.position
from (select ? as batch_seq) as x join waiting_batches w on w.batch_seq = x.batch_seq

-- lock_found_lanes
select s.service_id, s.lane, s.epoch, s.batch_seq, s.batch_id, s.position, s.by_pool,
s.submitted, s.dlt_status, s.commit_proven,
s.earlier_may_arrive, s.invalid_reported, s.attempts, s.submitted_at, s.since, s.checked_at, s.next_try_at, s.last_error,
s.held_at, s.held_reason, s.held_until_decision, s.delays, s.delayed_since, s.refusals, s.not_accepted, s.pool_parked
from (select ? as service_id, ? as lane, ? as batch_seq) as x join lanes s on s.service_id = x.service_id and s.lane = x.lane
where s.batch_seq = x.batch_seq
order by s.service_id, s.lane

-- lock_fully_expired_named
select f.service_id
from (select c.service_id
from (select ? as service_id) as x join service_id_claims c on c.service_id = x.service_id
where coalesce(c.claimant, null) = ? ) as f
join services v on v.service_id = f.service_id
join lanes l on l.service_id = v.service_id and l.lane = 0

limit ?

-- lock_lanes
select s.service_id, s.lane, s.epoch, s.batch_seq, s.batch_id, s.position, s.by_pool,
s.submitted, s.dlt_status, s.commit_proven,
s.earlier_may_arrive, s.invalid_reported, s.attempts, s.submitted_at, s.since, s.checked_at, s.next_try_at, s.last_error,
s.held_at, s.held_reason, s.held_until_decision, s.delays, s.delayed_since, s.refusals, s.not_accepted, s.pool_parked
from (select ? as service_id, ? as batch_id) as x join lanes s on s.service_id = x.service_id
where s.batch_id = x.batch_id
order by s.service_id, s.lane

-- lock_live_instance
select i.instance_id, i.expiry_1 from instances i
where i.instance_id = ? and i.expiry_1 > cast(unixepoch('subsec') * 1000000 as integer) and not i.draining and (i.ledger_id is not null
or not exists (select 1 from ledger l where l.id = 1))

-- lock_unclaimed_named
select f.service_id
from (select c.service_id
from (select ? as service_id) as x join service_id_claims c on c.service_id = x.service_id
where coalesce(c.claimant, null) is null ) as f
join services v on v.service_id = f.service_id
join lanes l on l.service_id = v.service_id and l.lane = 0

limit ?

-- look_up_again
update transaction_lookups set lookups = 1, next_lookup_at = x.next_lookup_at
from (select ? as transaction_id, ? as next_lookup_at) as x join missing_transactions m on m.transaction_id = x.transaction_id
where m.found_at is null and transaction_lookups.service_id = m.service_id
and transaction_lookups.signer = m.signer
and transaction_lookups.transaction_id = m.transaction_id

-- make_lanes
insert into lanes (service_id, lane, epoch)
select x.service_id, x.lane, c.epoch
from (select ? as service_id, ? as lane) as x join service_id_claims c on c.service_id = x.service_id

-- mark_asked
update missing_transactions set asked_at = x.asked_at
from (select ? as transaction_id, ? as asked_at) as x where missing_transactions.transaction_id = x.transaction_id
and missing_transactions.found_at is null
and missing_transactions.invalid_seq is not null and missing_transactions.asked_at = 0

-- mark_found_transactions
update missing_transactions set found_at = x.found_at
from (select ? as found_at, ? as transaction_id, ? as batch_seq) as x
where missing_transactions.transaction_id = x.transaction_id
and missing_transactions.batch_seq = x.batch_seq

-- mark_looked_up
update transaction_lookups
set lookups = transaction_lookups.lookups + 1, next_lookup_at = x.next_lookup_at
from (select ? as service_id, ? as signer, ? as transaction_id, ? as next_lookup_at) as x where transaction_lookups.service_id = x.service_id
and transaction_lookups.signer = x.signer
and transaction_lookups.transaction_id = x.transaction_id

-- mark_overdue
update missing_transactions set overdue = true
where batch_seq in (select x.batch_seq from (select ? as batch_seq) as x) and found_at is null

-- next_dependents
select b.service_id, b.batch_id
from (select ? as service_id) as x join lanes s on s.service_id = x.service_id
join batches b on b.seq = (
select w.batch_seq from waiting_batches w
where w.blocker_seq = s.batch_seq
order by w.blocker_seq, w.position, w.batch_seq limit 1)
where s.busy and b.service_id = s.service_id and (select c.claimant from service_id_claims c where c.service_id = s.service_id) = ?

-- next_free_batches
select b.service_id, b.batch_id
from waiting_batches w join batches b on b.seq = w.batch_seq
where w.service_id = ? and w.position is not null and w.blocker_seq is null and (select c.claimant from service_id_claims c where c.service_id = w.service_id) = ?
order by w.service_id, w.position limit ?

-- next_service_in_order_that_ends
select h.service_id from halts h
where h.service_id > ? and h.ends_until is not null and not h.positioned
order by h.service_id limit 1

-- next_service_in_order_without_policy
select h.service_id from halts h
where h.service_id > ? and h.origin = 'COMMAND' and not h.positioned
order by h.service_id limit 1

-- next_service_that_ends
select h.service_id from halts h
where h.service_id > ? and h.ends_until is not null and h.positioned
order by h.service_id limit 1

-- next_service_without_policy
select h.service_id from halts h
where h.service_id > ? and h.origin = 'COMMAND' and h.positioned
order by h.service_id limit 1

-- open_services
with recursive waiting(service_id) as (
select (select w.service_id from waiting_batches w where w.service_id > ''
order by w.service_id, w.batch_seq limit 1)
union all
select (select w.service_id from waiting_batches w where w.service_id > r.service_id
order by w.service_id, w.batch_seq limit 1)
from waiting r where r.service_id is not null
)
select count(x.service_id) as count from (
select s.service_id from lanes s where s.busy
union select r.service_id from waiting r
) as x

-- raise_epochs
update lanes as s set epoch = x.epoch
from (select ? as service_id, ? as epoch) as x where s.service_id = x.service_id

-- release_created_at
update services as s set added = s.added - x.count
from (select ? as service_id, ? as count) as x where s.service_id = x.service_id

-- release_overdue
update missing_transactions set found_at = ?
where batch_seq = ? and found_at is null and (
select count(*) from missing_transactions o
where o.batch_seq = ? and o.overdue) > 0

-- release_waiting
delete from waiting_holds where batch_seq = ?

-- remove_address_lengths
delete from address_lengths
where service_id in (
select x.service_id from (select ? as service_id) as x
where not exists (
select 1 from declared_addresses d where d.service_id = x.service_id))

-- remove_arrived_transactions
delete from missing_transactions where (transaction_id, batch_seq) in (
select x.transaction_id, x.batch_seq from (select ? as transaction_id, ? as batch_seq) as x)

-- remove_changed_blocker
delete from changed_blockers where batch_seq = ? and changed_at = ?

-- remove_declared_addresses
delete from declared_addresses where (service_id, address, kind, position) in (
select x.service_id, x.address, x.kind, x.position from (select ? as service_id, ? as address, ? as kind, ? as position) as x)

-- remove_halts
delete from halts where batch_seq in (select x.batch_seq from (select ? as batch_seq) as x)

-- remove_lookups
delete from transaction_lookups
where (service_id, signer, transaction_id) in (
select x.service_id, x.signer, x.transaction_id from (select ? as service_id, ? as signer, ? as transaction_id) as x)
and not exists (
select 1 from missing_transactions m
where m.signer = transaction_lookups.signer
and m.transaction_id = transaction_lookups.transaction_id
and m.found_at is null)

-- remove_missing_transactions
delete from missing_transactions
where batch_seq in (select x.batch_seq from (select ? as batch_seq) as x) and found_at is null

-- remove_waiting_batches
delete from waiting_batches where batch_seq in (select x.batch_seq from (select ? as batch_seq) as x)

-- reserve_created_at
insert into services (service_id, last_created_at, added)
select service_id, last_created_at, added from (select ? as service_id, ? as last_created_at, ? as added) as x where true order by service_id
on conflict (service_id) do update set
last_created_at = case
when services.last_created_at + excluded.added > excluded.last_created_at
then services.last_created_at + excluded.added
else excluded.last_created_at
end,
added = services.added + excluded.added
returning service_id, last_created_at, added

-- reserve_positions
update services set last_created_at = case
when services.last_created_at + x.count > x.now + x.count - 1
then services.last_created_at + x.count
else x.now + x.count - 1 end
from (select ? as service_id, ? as count, ? as now) as x where services.service_id = x.service_id
returning services.service_id, services.last_created_at

-- restored_services
select count(distinct s.service_id) as count
from database_state d cross join lanes s
where d.id = 1 and d.restored_seq is not null and s.busy and s.batch_seq <= d.restored_seq

-- round_candidates
select h.service_id, h.lane, h.batch_seq, coalesce(h.position, h.created_at) as position,
h.submitted, h.dlt_status, h.blocker_seq is not null as is_blocked,
h.held_at is not null as is_held, h.pool_parked,
case when h.by_pool then coalesce((
select n.outcome is null from account_nonces n
where n.withdrawal_seq = (select o.seq from withdrawals o where o.batch_seq = h.batch_seq)
order by n.withdrawal_seq desc, n.nonce desc limit 1), false) else false end as has_nonce,
case when h.busy and ((not h.submitted and h.dlt_status is null) or (not h.submitted and h.dlt_status = 'DELAYED') or (not h.submitted and h.dlt_status = 'UNKNOWN')) and h.held_at is null and (h.next_try_at is null or h.next_try_at <= ?
or h.since > ?) then (
select cast(length(p.serialized_batch) as bigint) from batch_payloads p
where p.batch_seq = h.batch_seq) end as length
from (select ? as service_id) as x
join service_id_claims c on c.service_id = x.service_id
join lanes h on h.service_id = x.service_id
where coalesce(c.claimant, null) = ? and c.paused_at is null and h.busy

-- set_ends_until
update halts set ends_until = ?, origin = ? where batch_seq = ?

-- set_halt_position
update halts set position = ? where batch_seq = ?

-- set_policy_applied
update halts set origin = 'POLICY'
where batch_seq in (select x.batch_seq from (select ? as batch_seq) as x)

-- still_unplaced
select w.batch_seq from (select ? as batch_seq) as x join waiting_batches w on w.batch_seq = x.batch_seq
where w.position is null

-- take_on_pause
update instances set paused = true
where instance_id = ? and exists (
select 1 from database_state d where d.id = 1 and d.paused_at is not null)

-- take_round
update lanes
set submitted = true, dlt_status = null, attempts = lanes.attempts + 1,
submitted_at = ?, since = ?, next_try_at = null
from (
select h.service_id, h.lane, h.batch_seq
from (select ? as service_id, ? as lane, ? as batch_seq) as x
join service_id_claims c on c.service_id = x.service_id
join lanes h on h.service_id = x.service_id and h.lane = x.lane
where coalesce(c.claimant, null) = ? and c.paused_at is null
and h.batch_seq = x.batch_seq and h.busy and ((not h.submitted and h.dlt_status is null) or (not h.submitted and h.dlt_status = 'DELAYED') or (not h.submitted and h.dlt_status = 'UNKNOWN')) and h.held_at is null and (h.next_try_at is null or h.next_try_at <= ?
or h.since > ?)
and exists (
select 1 from instances i
where i.instance_id = ? and i.expiry_1 > cast(unixepoch('subsec') * 1000000 as integer) and i.expiry_2 > cast(unixepoch('subsec') * 1000000 as integer) + ?
and (i.ledger_id is not null
or not exists (select 1 from ledger l where l.id = 1)) and not i.paused and not i.draining )

) as r
where lanes.service_id = r.service_id and lanes.lane = r.lane
and lanes.batch_seq = r.batch_seq
returning lanes.service_id, lanes.lane, lanes.batch_id, lanes.attempts, lanes.epoch, (
select p.serialized_batch from batch_payloads p
where p.batch_seq = lanes.batch_seq
) as serialized_batch, (
select p.deadline from batch_payloads p
where p.batch_seq = lanes.batch_seq
) as deadline

-- waiting_services
with recursive waiting(service_id) as (
select (select w.service_id from waiting_batches w where w.service_id > ?
order by w.service_id, w.batch_seq limit 1)
union all
select (select w.service_id from waiting_batches w where w.service_id > r.service_id
order by w.service_id, w.batch_seq limit 1)
from waiting r where r.service_id is not null
)
select r.service_id from waiting r where r.service_id is not null limit ?

-- write_blockers
update waiting_batches as w
set blocker_seq = x.blocker_seq, depends_on_blocker = x.depends_on_blocker
from (select ? as batch_seq, ? as blocker_seq, ? as depends_on_blocker) as x where w.batch_seq = x.batch_seq

-- write_blockers_in_lanes
update lanes set blocker_seq = x.blocker_seq
from (select ? as batch_seq, ? as blocker_seq, ? as depends_on_blocker, ? as service_id) as x where lanes.service_id = x.service_id and lanes.batch_seq = x.batch_seq

-- write_lanes
update lanes as s
set submitted = x.submitted, dlt_status = x.dlt_status, commit_proven = x.commit_proven,
earlier_may_arrive = x.earlier_may_arrive, invalid_reported = x.invalid_reported,
submitted_at = x.submitted_at, since = x.since, checked_at = x.checked_at,
next_try_at = x.next_try_at, delays = x.delays, delayed_since = x.delayed_since,
refusals = x.refusals, not_accepted = x.not_accepted, last_error = x.last_error,
held_at = x.held_at, held_reason = x.held_reason,
held_until_decision = x.held_until_decision, pool_parked = x.pool_parked
from (select ? as service_id, ? as lane, ? as batch_seq, ? as attempts, ? as submitted, ? as commit_proven, ? as earlier_may_arrive, ? as invalid_reported, ? as dlt_status, ? as submitted_at, ? as since, ? as checked_at, ? as next_try_at, ? as delays, ? as delayed_since, ? as refusals, ? as not_accepted, ? as last_error, ? as held_at, ? as held_reason, ? as held_until_decision, ? as pool_parked) as x
where s.service_id = x.service_id and s.lane = x.lane
and s.batch_seq = x.batch_seq and s.attempts = x.attempts

-- write_places
update waiting_batches as w
set position = x.position, blocker_seq = x.blocker_seq,
depends_on_blocker = x.depends_on_blocker
from (select ? as batch_seq, ? as blocker_seq, ? as depends_on_blocker, ? as position) as x where w.batch_seq = x.batch_seq

-- begin_payment_sums
insert into payment_sums (pool, started_at, amount)
select pool, started_at, '0' from (select ? as pool, ? as started_at) as x where true order by pool
on conflict do nothing

-- cancel_withdrawal
update withdrawals set cancelled_at = ?
where withdrawal_id = ? and cancelled_at is null

-- check_cancelled
update lanes set checked_at = null where service_id = ? and batch_id = ?

-- close_nonce
update account_nonces as n
set outcome = x.outcome, pool_withdrawal_id = x.pool_withdrawal_id
from (select ? as service_id, ? as nonce, ? as outcome, ? as pool_withdrawal_id) as x where n.service_id = x.service_id and n.nonce = x.nonce

-- close_nonces
update account_nonces as n
set outcome = x.outcome, pool_withdrawal_id = x.pool_withdrawal_id, note = x.note,
mined_hash = x.mined_hash, block_number = x.block_number, gas_used = x.gas_used,
gas_price = x.gas_price
from (select ? as service_id, ? as nonce, ? as outcome, ? as pool_withdrawal_id, ? as note, ? as mined_hash, ? as block_number, ? as gas_used, ? as gas_price) as x where n.service_id = x.service_id and n.nonce = x.nonce

-- close_undecided_nonces
update account_nonces
set outcome = 'USED_ELSEWHERE', undecided = false,
note = 'an operator decided that it was used for no open withdrawal'
where service_id = ? and nonce >= ? and nonce <= ?
and coalesce(outcome, '') = '' and undecided

-- correct_ends
update withdrawals as w set list_state = 'COMMITTED'
from (select ? as service_id, ? as nonce) as x join account_nonces n on n.service_id = x.service_id and n.nonce = x.nonce
where w.seq = n.withdrawal_seq and w.list_state = 'INVALID'

-- count_transactions
select count(*) as transactions from signed_transactions k
where k.service_id = ? and k.nonce = ?

-- detach_nonces
update account_nonces as n set withdrawal_seq = null, generation = null
from (select ? as withdrawal_seq) as x where n.withdrawal_seq = x.withdrawal_seq

-- end_as_not_paid
update withdrawals set list_state = 'INVALID'
where seq in (select n.withdrawal_seq from account_nonces n
where n.service_id = ? and n.nonce >= ? and n.nonce <= ?
and n.outcome = 'USED_ELSEWHERE')
and list_state = 'OPEN'
and (select b.dlt_status from batches b where b.seq = withdrawals.batch_seq) is not null

-- end_as_paid
update withdrawals set list_state = 'COMMITTED'
where seq = ? and list_state = 'OPEN'
and (select b.dlt_status from batches b where b.seq = withdrawals.batch_seq) is not null

-- end_withdrawals
update withdrawals as w
set list_state = coalesce(
(select case n.pool_withdrawal_id when '' then 'OPEN' else 'COMMITTED' end
from account_nonces n where n.withdrawal_seq = w.seq and n.outcome = 'WITHDRAWN'),
x.dlt_status)
from (select ? as batch_seq, ? as dlt_status) as x where w.batch_seq = x.batch_seq

-- failed_withdrawals
select w.seq as withdrawal_seq, w.batch_seq, w.service_id, w.pool, w.amount, w.counted_at
from (select ? as batch_seq) as x join withdrawals w on w.batch_seq = x.batch_seq

-- find_nonce
select n.withdrawal_seq, n.generation, n.outcome, n.undecided, n.pool_withdrawal_id,
coalesce((select w.list_state = 'OPEN' from withdrawals w
where w.seq = n.withdrawal_seq), false) as is_of_open
from account_nonces n where n.service_id = ? and n.nonce = ?

-- find_withdrawals
select w.seq as withdrawal_seq, w.withdrawal_id,
w.service_id as gas_admin, w.kind, w.reward_id, w.pool, w.beneficiary, w.amount, w.generation,
w.created_at as scheduled_at, w.cancelled_at, w.idempotency_key, w.list_state
from (select ? as withdrawal_id) as x join withdrawals w on w.withdrawal_id = x.withdrawal_id

-- first_open_of_pools
with recursive pools (pool) as (
select min(w.pool) from withdrawals w where w.service_id = ? and w.list_state = 'OPEN'
union all
select (
select min(w.pool) from withdrawals w
where w.service_id = ? and w.list_state = 'OPEN' and w.pool > r.pool)
from pools r where r.pool is not null
)
select r.pool, b.seq as batch_seq, b.batch_id, b.created_at, coalesce((
select n.outcome is null from account_nonces n
where n.withdrawal_seq = (select o.seq from withdrawals o where o.batch_seq = b.seq)
order by n.withdrawal_seq desc, n.nonce desc limit 1), false) as has_nonce
from pools r join batches b on b.seq = (
select w.batch_seq from withdrawals w join batches o on o.seq = w.batch_seq
where w.service_id = ? and w.list_state = 'OPEN' and w.pool = r.pool and o.ended_at is null
order by w.service_id, w.pool, w.batch_seq limit 1)
order by b.created_at

-- first_open_withdrawal
select w.created_at as since
from batches b join withdrawals w on w.batch_seq = b.seq
where b.service_id = ? and b.ended_at is null
order by b.service_id, b.created_at limit 1

-- first_signed_nonce
select min(n.nonce) as nonce from account_nonces n
where n.service_id = ? and n.nonce >= ?
and (n.withdrawal_seq is not null or exists (
select 1 from signed_transactions k
where k.service_id = n.service_id and k.nonce = n.nonce))

-- following_payments
select b.batch_id, b.created_at, (
select h.held_at from waiting_holds h where h.batch_seq = b.seq
) is not null or (
select l.held_at from lanes l where l.service_id = b.service_id and l.batch_seq = b.seq
) is not null or (
select c.paused_at from service_id_claims c where c.service_id = b.service_id
) is not null or (
select d.paused_at from database_state d where d.id = 1
) is not null as is_held, w.seq as withdrawal_seq, w.withdrawal_id,
w.service_id as gas_admin, w.kind, w.reward_id, w.pool, w.beneficiary, w.amount, w.generation,
w.created_at as scheduled_at, w.cancelled_at, w.idempotency_key, w.list_state, n.service_id as account, n.nonce,
n.generation as nonce_generation, n.assigned_at, n.note, n.foreign_hash, n.outcome,
n.pool_withdrawal_id, n.mined_hash, n.block_number, n.gas_used, n.gas_price, coalesce(b.seq <= (select d.restored_seq from database_state d where d.id = 1), false) as is_restored
from batches b join withdrawals w on w.batch_seq = b.seq left join account_nonces n on n.withdrawal_seq = w.seq and n.nonce = (
select max(m.nonce) from account_nonces m where m.withdrawal_seq = w.seq)
where b.service_id = ? and b.created_at > ? and b.ended_at is null
order by b.service_id, b.created_at limit ?

-- following_payments_of_pool
select b.batch_id, b.created_at, (
select h.held_at from waiting_holds h where h.batch_seq = b.seq
) is not null or (
select l.held_at from lanes l where l.service_id = b.service_id and l.batch_seq = b.seq
) is not null or (
select c.paused_at from service_id_claims c where c.service_id = b.service_id
) is not null or (
select d.paused_at from database_state d where d.id = 1
) is not null as is_held, w.seq as withdrawal_seq, w.withdrawal_id,
w.service_id as gas_admin, w.kind, w.reward_id, w.pool, w.beneficiary, w.amount, w.generation,
w.created_at as scheduled_at, w.cancelled_at, w.idempotency_key, w.list_state, n.service_id as account, n.nonce,
n.generation as nonce_generation, n.assigned_at, n.note, n.foreign_hash, n.outcome,
n.pool_withdrawal_id, n.mined_hash, n.block_number, n.gas_used, n.gas_price, coalesce(b.seq <= (select d.restored_seq from database_state d where d.id = 1), false) as is_restored
from withdrawals w join batches b on b.seq = w.batch_seq left join account_nonces n on n.withdrawal_seq = w.seq and n.nonce = (
select max(m.nonce) from account_nonces m where m.withdrawal_seq = w.seq)
where w.service_id = ? and w.pool = ? and w.list_state = 'OPEN'
and b.created_at > ? and b.ended_at is null
order by w.service_id, w.pool, w.batch_seq limit ?

-- has_undecided_nonce
select n.nonce from account_nonces n
where n.service_id = ? and coalesce(n.outcome, '') = '' and n.undecided
order by n.nonce limit 1

-- head_at_ledger
select s.epoch, s.attempts, s.created_at,
(((s.submitted and s.dlt_status = 'PENDING') or (s.submitted and s.dlt_status = 'VALID')) and s.held_at is null) as is_under_way,
(select count(*) from lanes o
where o.service_id = s.service_id and o.busy) > 1 as has_others
from lanes s
where s.service_id = ? and s.batch_id = ? and ((s.submitted and s.dlt_status = 'UNKNOWN') or (s.submitted and s.dlt_status = 'PENDING') or (s.submitted and s.dlt_status = 'VALID'))

-- highest_block
select l.highest_block from ledger l where l.id = ?

-- highest_nonce
select max(n.nonce) as nonce from account_nonces n where n.service_id = ?

-- insert_nonce
insert into account_nonces
(service_id, nonce, withdrawal_seq, generation, assigned_at)
select service_id, nonce, withdrawal_seq, generation, assigned_at from (select ? as service_id, ? as nonce, ? as withdrawal_seq, ? as generation, ? as assigned_at) as x

-- insert_settled_nonce
insert into account_nonces
(service_id, nonce, withdrawal_seq, generation, foreign_hash, note, outcome, undecided,
assigned_at)
select service_id, nonce, withdrawal_seq, generation, foreign_hash, note, outcome, undecided,
assigned_at
from (select ? as service_id, ? as nonce, ? as withdrawal_seq, ? as generation, ? as foreign_hash, ? as note, ? as outcome, ? as undecided, ? as assigned_at) as x

-- insert_transaction
insert into signed_transactions
(service_id, nonce, position, hash, bytes, max_fee, tip, is_filler, signed_at, adopted)
select service_id, nonce, position, hash, bytes, max_fee, tip, is_filler, signed_at, adopted
from (select ? as service_id, ? as nonce, ? as position, ? as hash, ? as bytes, ? as max_fee, ? as tip, ? as is_filler, ? as signed_at, ? as adopted) as x

-- insert_withdrawals
insert into withdrawals (withdrawal_id, service_id, kind, reward_id, pool,
beneficiary, amount, batch_seq, created_at, counted_at, idempotency_key)
select withdrawal_id, service_id, kind, reward_id, pool,
beneficiary, amount, batch_seq, created_at, counted_at, idempotency_key
from (select ? as withdrawal_id, ? as service_id, ? as kind, ? as reward_id, ? as pool, ? as beneficiary, ? as amount, ? as batch_seq, ? as created_at, ? as counted_at, ? as idempotency_key) as x order by created_at, service_id

-- install_first_heads
update lanes as s
set batch_seq = x.batch_seq, batch_id = x.batch_id, created_at = x.created_at
from (select ? as service_id, ? as batch_id, ? as lane, ? as batch_seq, ? as created_at) as x
where s.service_id = x.service_id and s.lane = x.lane and s.batch_seq is null
and (not s.by_pool or (
select count(*) from lanes o where o.service_id = s.service_id and o.busy) = 0)

-- lanes_of_gas_admins
select s.service_id, s.created_at, s.last_error
from (select ? as service_id) as x join lanes s on s.service_id = x.service_id
where s.batch_seq is not null order by s.service_id, s.created_at

-- lanes_of_pools
select s.lane, s.batch_seq, s.created_at, s.pool_parked, (s.busy and ((not s.submitted and s.dlt_status is null) or (not s.submitted and s.dlt_status = 'DELAYED') or (not s.submitted and s.dlt_status = 'UNKNOWN')) and s.held_at is null and (s.next_try_at is null or s.next_try_at <= ?
or s.since > ?)) as is_due,
coalesce((
select n.outcome is null from account_nonces n
where n.withdrawal_seq = (select o.seq from withdrawals o where o.batch_seq = s.batch_seq)
order by n.withdrawal_seq desc, n.nonce desc limit 1), false) as has_nonce,
(select w.pool from withdrawals w where w.batch_seq = s.batch_seq) as pool
from lanes s where s.service_id = ? order by s.service_id, s.lane

-- last_event_group
select coalesce(max(g.seq), 0) as number from event_groups g

-- last_failures
select f.service_id, f.pool, f.failed_at, w.withdrawal_id, r.error_message as reason
from (select ? as service_id) as x join last_failures f on f.service_id = x.service_id
join withdrawals w on w.seq = f.withdrawal_seq
left join transaction_receipts r on r.batch_seq = f.batch_seq and r.position = 0
order by f.service_id, f.pool

-- load_events
select e.group_seq, e.at, e.position, e.attempt, e.kind, e.state, e.detail,
b.service_id, b.batch_id from (select ? as batch_seq, ? as group_seq, ? as position) as x
join batch_events e on e.batch_seq = x.batch_seq and e.group_seq = x.group_seq
and e.position = x.position
join batches b on b.seq = e.batch_seq

-- lock_lanes_of
select s.service_id from lanes s where s.service_id = ? order by s.lane

-- lock_nonce
select n.outcome, n.pool_withdrawal_id from account_nonces n
where n.service_id = ? and n.nonce = ?

-- lock_nonces
select n.nonce, n.outcome, n.pool_withdrawal_id, w.list_state
from (select ? as service_id, ? as nonce) as x join account_nonces n
on n.service_id = x.service_id and n.nonce = x.nonce
left join withdrawals w on w.seq = n.withdrawal_seq
order by n.service_id, n.nonce

-- lock_payment_sums
select p.pool, p.started_at, p.amount
from (select ? as pool, ? as started_at) as x join payment_sums p on p.pool = x.pool and p.started_at = x.started_at
order by p.pool, p.started_at

-- mark_lanes_by_pool
update lanes set by_pool = true where service_id = ?

-- mark_not_counted
update withdrawals as w set counted_at = null
from (select ? as withdrawal_seq) as x where w.seq = x.withdrawal_seq

-- mark_sent
update signed_transactions as k
set sent_at = x.sent_at, last_error = x.last_error
from (select ? as hash, ? as sent_at, ? as last_error) as x where k.hash = x.hash

-- may_pay
select (coalesce(n.outcome, '') = 'WITHDRAWN' or
(n.outcome is null and b.seq is not null and b.dlt_status is distinct from 'INVALID')) and (n.outcome is not null or w.cancelled_at is null) as may_pay
from account_nonces n left join withdrawals w on w.seq = n.withdrawal_seq
left join batches b on b.seq = w.batch_seq
where n.service_id = ? and n.nonce = ?

-- move_withdrawals
update withdrawals as w
set service_id = x.service_id, generation = x.generation, batch_seq = x.batch_seq
from (select ? as withdrawal_seq, ? as service_id, ? as generation, ? as batch_seq) as x where w.seq = x.withdrawal_seq

-- next_event_groups
select g.seq, g.xid, g.instance, g.batch_seqs from event_groups g where g.seq > ? and g.seq <= ?
order by g.seq limit ?

-- note
update account_nonces as n set note = x.note from (select ? as service_id, ? as nonce, ? as note) as x
where n.service_id = x.service_id and n.nonce = x.nonce
and n.outcome is null and n.note is distinct from x.note

-- note_filled_nonces
update account_nonces set note = 'an operator decided that it is filled'
where service_id = ? and nonce >= ? and nonce <= ?
and withdrawal_seq is null and coalesce(outcome, '') = '' and not undecided

-- open_of_gas_admins
select v.service_id, v.added - (
select cast(coalesce(sum(s.ended), 0) as bigint) from lanes s
where s.service_id = v.service_id) as open
from (select ? as service_id) as x join services v on v.service_id = x.service_id

-- open_payments_from
select b.batch_id, b.created_at, (
select h.held_at from waiting_holds h where h.batch_seq = b.seq
) is not null or (
select l.held_at from lanes l where l.service_id = b.service_id and l.batch_seq = b.seq
) is not null or (
select c.paused_at from service_id_claims c where c.service_id = b.service_id
) is not null or (
select d.paused_at from database_state d where d.id = 1
) is not null as is_held, w.seq as withdrawal_seq, w.withdrawal_id,
w.service_id as gas_admin, w.kind, w.reward_id, w.pool, w.beneficiary, w.amount, w.generation,
w.created_at as scheduled_at, w.cancelled_at, w.idempotency_key, w.list_state, n.service_id as account, n.nonce,
n.generation as nonce_generation, n.assigned_at, n.note, n.foreign_hash, n.outcome,
n.pool_withdrawal_id, n.mined_hash, n.block_number, n.gas_used, n.gas_price, coalesce(b.seq <= (select d.restored_seq from database_state d where d.id = 1), false) as is_restored
from account_nonces n
join withdrawals w on w.seq = n.withdrawal_seq
join batches b on b.seq = w.batch_seq
where n.service_id = ? and n.nonce >= ? and n.outcome is null and b.ended_at is null
order by n.service_id, n.nonce

-- payable_owner
select w.seq as withdrawal_seq, w.generation
from withdrawals w
join batches b on b.seq = w.batch_seq
left join account_nonces n on n.withdrawal_seq = w.seq
and (n.outcome is null or n.outcome = 'WITHDRAWN')
where w.withdrawal_id = ? and w.service_id = ?
and ((n.nonce is null and b.dlt_status is null) or n.nonce = ?)

-- payment
select w.seq as withdrawal_seq, w.withdrawal_id,
w.service_id as gas_admin, w.kind, w.reward_id, w.pool, w.beneficiary, w.amount, w.generation,
w.created_at as scheduled_at, w.cancelled_at, w.idempotency_key, w.list_state, n.service_id as account, n.nonce,
n.generation as nonce_generation, n.assigned_at, n.note, n.foreign_hash, n.outcome,
n.pool_withdrawal_id, n.mined_hash, n.block_number, n.gas_used, n.gas_price, coalesce(b.seq <= (select d.restored_seq from database_state d where d.id = 1), false) as is_restored
from batches b join withdrawals w on w.batch_seq = b.seq left join account_nonces n on n.withdrawal_seq = w.seq and n.nonce = (
select max(m.nonce) from account_nonces m where m.withdrawal_seq = w.seq)
where b.batch_id = ? and b.service_id = ?

-- payment_sums_since
select p.pool, p.started_at, p.amount
from (select ? as pool, ? as since, ? as before) as x join payment_sums p on p.pool = x.pool
and p.started_at >= x.since and p.started_at < x.before

-- pools
select distinct w.pool from withdrawals w where w.service_id = ? order by w.pool

-- read_event_feed
select f.generation, f.removed_seq, f.removed_xid from event_feed f where f.id = 1

-- record_foreign_use
update account_nonces as n set foreign_hash = x.foreign_hash from (select ? as service_id, ? as nonce, ? as foreign_hash) as x
where n.service_id = x.service_id and n.nonce = x.nonce
and n.outcome is null and n.foreign_hash is distinct from x.foreign_hash

-- record_highest_block
update ledger set highest_block = ?
where id = 1 and coalesce(highest_block, -1) < ?

-- remove_nonces
delete from account_nonces where service_id = ? and nonce >= ?

-- remove_payment_sums
delete from payment_sums
where pool in (select x.pool from (select ? as pool) as x) and started_at < ?

-- remove_transactions
delete from signed_transactions where service_id = ? and nonce = ?

-- services_with_parked_pools
select distinct s.service_id
from (select ? as service_id) as x join lanes s on s.service_id = x.service_id where s.pool_parked

-- settle_nonce
update account_nonces as n
set withdrawal_seq = x.withdrawal_seq, generation = x.generation,
foreign_hash = x.foreign_hash, note = x.note, outcome = x.outcome,
undecided = x.undecided
from (select ? as service_id, ? as nonce, ? as withdrawal_seq, ? as generation, ? as foreign_hash, ? as note, ? as outcome, ? as undecided) as x where n.service_id = x.service_id and n.nonce = x.nonce

-- signed_transactions
select k.service_id as account, k.nonce, k.hash, k.bytes,
k.max_fee, k.tip, k.is_filler, k.signed_at, k.sent_at, k.last_error, k.adopted from (select ? as service_id, ? as nonce) as x
join signed_transactions k on k.service_id = x.service_id and k.nonce = x.nonce
order by k.service_id, k.nonce, k.position

-- start_generation
update withdrawals as w
set generation = x.generation, batch_seq = x.batch_seq, cancelled_at = null,
list_state = 'OPEN', counted_at = x.counted_at
from (select ? as withdrawal_id, ? as generation, ? as batch_seq, ? as counted_at) as x where w.withdrawal_id = x.withdrawal_id

-- stored_nonces
select n.nonce from account_nonces n
where n.service_id = ? and n.nonce >= ? and n.nonce <= ? order by n.nonce

-- transactions_from
select k.service_id as account, k.nonce, k.hash, k.bytes,
k.max_fee, k.tip, k.is_filler, k.signed_at, k.sent_at, k.last_error, k.adopted
from account_nonces n
join signed_transactions k on k.service_id = n.service_id and k.nonce = n.nonce
left join withdrawals w on w.seq = n.withdrawal_seq
left join batches b on b.seq = w.batch_seq
where n.service_id = ? and n.nonce >= ?
and k.position = (
select o.position from signed_transactions o
where o.service_id = n.service_id and o.nonce = n.nonce
order by o.is_filler desc, o.max_fee desc, o.position desc limit 1)
and (k.is_filler or (coalesce(n.outcome, '') = 'WITHDRAWN' or
(n.outcome is null and b.seq is not null and b.dlt_status is distinct from 'INVALID')))
order by n.service_id, n.nonce

-- undecided_nonces
select n.service_id as account, n.nonce, n.note, n.foreign_hash as hash
from account_nonces n
where n.service_id > ? and coalesce(n.outcome, '') = '' and n.undecided
union all
select n.service_id as account, n.nonce, n.note, n.mined_hash as hash
from account_nonces n join withdrawals w on w.seq = n.withdrawal_seq
join batches b on b.seq = w.batch_seq
where n.service_id > ? and n.pool_withdrawal_id = '' and w.list_state = 'OPEN'
and b.dlt_status is not null
order by account, nonce

-- unpaid_withdrawals
select w.withdrawal_id, w.created_at as scheduled_at, n.nonce,
b.dlt_status is null as is_open
from withdrawals w
join batches b on b.seq = w.batch_seq
left join account_nonces n on n.withdrawal_seq = w.seq and n.outcome is null
where w.beneficiary = ? and w.service_id = ? and w.pool = ? and w.amount = ?
and coalesce(b.dlt_status, '') <> 'COMMITTED'
and not exists (select 1 from account_nonces p
where p.withdrawal_seq = w.seq and p.outcome = 'WITHDRAWN')
order by b.created_at, w.seq

-- unsettled_nonces
select n.nonce, n.undecided, n.note, k.hash,
(n.withdrawal_seq is null and not n.undecided and n.note is not null) as to_fill
from account_nonces n
left join withdrawals w on w.seq = n.withdrawal_seq
left join batches b on b.seq = w.batch_seq
left join signed_transactions k on k.service_id = n.service_id and k.nonce = n.nonce
where n.service_id = ? and coalesce(n.outcome, '') = ''
and (n.undecided or n.withdrawal_seq is null or b.dlt_status is not null)
order by n.nonce, k.position

-- unsettled_since
select coalesce(
(select n.assigned_at from account_nonces n where n.service_id = ?
order by n.nonce desc limit 1),
(select w.created_at from withdrawals w where w.service_id = ?
order by w.seq limit 1)) as since

-- update_payment_sums
update payment_sums as p set amount = x.amount
from (select ? as pool, ? as started_at, ? as amount) as x where p.pool = x.pool and p.started_at = x.started_at

-- withdraw_payments
update account_nonces
set outcome = 'USED_ELSEWHERE', pool_withdrawal_id = null
where service_id = ? and nonce >= ? and nonce <= ? and pool_withdrawal_id = ''
and (select w.list_state from withdrawals w
join batches b on b.seq = w.batch_seq and b.dlt_status is not null
where w.seq = account_nonces.withdrawal_seq) = 'OPEN'

-- withdrawals_of_events
select x.batch_id, w.withdrawal_id, w.pool, w.amount, (
select (
select k.hash from signed_transactions k
where k.service_id = n.service_id and k.nonce = n.nonce and not k.is_filler
order by k.max_fee desc, k.position desc limit 1)
from account_nonces n
where n.withdrawal_seq = w.seq and coalesce(n.outcome, '') <> 'USED_ELSEWHERE'
and (n.generation = x.generation
or (n.generation < x.generation and n.outcome is null))
order by n.nonce desc limit 1) as hash
from (select ? as batch_id, ? as withdrawal_id, ? as generation) as x join withdrawals w on w.withdrawal_id = x.withdrawal_id

-- withdrawals_without_event
select n.service_id, w.batch_seq
from account_nonces n join withdrawals w on w.seq = n.withdrawal_seq
join batches b on b.seq = w.batch_seq
where n.service_id > ? and n.pool_withdrawal_id = '' and w.list_state = 'OPEN'
and b.dlt_status is not null
order by n.service_id, n.nonce

-- write_last_failures
insert into last_failures (service_id, pool, withdrawal_seq, batch_seq, failed_at)
select service_id, pool, withdrawal_seq, batch_seq, failed_at
from (select ? as service_id, ? as pool, ? as withdrawal_seq, ? as batch_seq, ? as failed_at) as x where true order by service_id, pool
on conflict (service_id, pool) do update
set withdrawal_seq = excluded.withdrawal_seq, batch_seq = excluded.batch_seq,
failed_at = excluded.failed_at

-- advance_webhook
update webhooks set cursor = ?, attempts = 0, next_try_at = 0, last_error = null,
leased_until = ?
where id = ? and lease = ?

-- advance_webhook_past_removed
update webhooks set cursor = ?, missed_at = ?, attempts = 0, next_try_at = 0,
leased_until = ?
where id = ? and lease = ?

-- batch_history
select e.group_seq, e.at, e.position, e.attempt, e.kind, e.state, e.detail,
b.service_id, b.batch_id,
(select g.instance from event_groups g where g.seq = e.group_seq) as instance
from batch_events e
join batches b on b.seq = e.batch_seq
where e.batch_seq = ?
order by e.batch_seq, e.group_seq, e.position

-- begin_waiting_holds
update lanes
set held_at = w.held_at, held_reason = w.held_reason, held_until_decision = true
from (select ? as service_id, ? as lane, ? as batch_seq) as x join waiting_holds w on w.batch_seq = x.batch_seq
where lanes.service_id = x.service_id and lanes.lane = x.lane
and lanes.batch_seq = x.batch_seq

-- count_new_services
select x.number,
(select count(*) from new_services n where n.signer = x.signer) as of_signer,
(select count(*) from new_services) as in_all
from (select ? as number, ? as signer) as x

-- count_open_of_client
select count(*) as open from client_batches c join batches b on b.seq = c.batch_seq
where c.client = ? and b.ended_at is null

-- count_removable
select b.ended_at, cast(length(p.serialized_batch) as bigint) as length
from (select ? as seq) as x join batches b on b.seq = x.seq
join batch_payloads p on p.batch_seq = b.seq
where b.ended_at is not null and (
select count(*) from batch_events e where e.batch_seq = b.seq and e.at >= ?) = 0 and (
select count(*) from withdrawals w where w.batch_seq = b.seq) = 0 and (
select count(*) from halts h where h.batch_seq = b.seq) = 0 and (
select count(*) from changed_blockers c where c.batch_seq = b.seq) = 0 and (
b.dlt_status is null or b.dlt_status <> 'COMMITTED' or b.attempts = 0 or (
select count(*) from service_histories h where h.service_id = b.service_id) = 0 or (
select n.seq from batches n
where n.service_id = b.service_id and n.created_at > b.created_at
and n.dlt_status = 'COMMITTED' and n.attempts > 0
order by n.created_at limit 1 offset 1) is not null)

-- create_webhook
insert into webhooks (url, secret, services, kinds, created_at, cursor)
select ?, ?, ?, ?, ?, ? where (select count(*) from webhooks) < 100
returning id, url, services, kinds, created_at, attempts, next_try_at, last_error,
disabled_at, missed_at, cast(0 as bigint) as failed

-- declare_new
insert into declared_new_batches (batch_seq) select batch_seq from (select ? as batch_seq) as x where true
on conflict (batch_seq) do nothing

-- delay_webhook
update webhooks set cursor = ?, attempts = ?, next_try_at = ?, last_error = ?,
leased_until = ?
where id = ? and lease = ?

-- disable_webhook
update webhooks set cursor = ?, attempts = 0, next_try_at = 0, last_error = ?,
disabled_at = ?, leased_until = ?
where id = ? and lease = ?

-- due_batches
select s.service_id, s.batch_id, s.attempts, s.epoch, s.checked_at, s.submitted_at, s.held_at,
s.dlt_status, s.invalid_reported from lanes s
where s.busy and ((s.submitted and s.dlt_status = 'UNKNOWN') or (s.submitted and s.dlt_status = 'PENDING') or (s.submitted and s.dlt_status = 'VALID')) and (coalesce(s.checked_at, s.submitted_at) > ? or (coalesce(s.checked_at, s.submitted_at) <= ? and (
coalesce(s.checked_at, s.submitted_at) <= ?
or (s.held_at is null and coalesce(s.checked_at, s.submitted_at) + (coalesce(s.checked_at, s.submitted_at) - s.submitted_at) / 4 <= ?))))
and (select c.claimant from service_id_claims c where c.service_id = s.service_id) = ?
order by s.checked_at nulls first, s.submitted_at, s.service_id limit ?

-- due_webhooks
select webhooks.id, webhooks.url, webhooks.secret, webhooks.services, webhooks.kinds, webhooks.cursor,
webhooks.attempts, webhooks.lease, exists (
select 1 from failed_deliveries f where f.webhook_id = webhooks.id and f.again)
as has_failed_again from webhooks
where webhooks.disabled_at is null and webhooks.leased_until <= ?
and webhooks.next_try_at <= ?
order by webhooks.id

-- enable_webhook
update webhooks set next_try_at = 0, disabled_at = null where id = ?

-- end_webhook_lease
update webhooks set lease = lease + 1, leased_until = 0 where id = ? and lease = ?

-- extend_webhook_lease
update webhooks set leased_until = ? where id = ? and lease = ?

-- fail_delivery_again
update failed_deliveries set again = false, attempts = attempts + 1, error = ?
where id = ?

-- failed_deliveries
select f.id, f.message_id, f.body, f.attempts, f.error, f.failed_at, f.again from failed_deliveries f
where f.webhook_id = ? and f.id > ?
order by f.webhook_id, f.id limit ?

-- failed_deliveries_again
select f.id, f.message_id, f.body, f.attempts, f.error, f.failed_at, f.again from failed_deliveries f
where f.webhook_id = ? and f.again order by f.webhook_id, f.id limit ?

-- find_batch_seq
select b.seq from batches b where b.batch_id = ? and b.service_id = ?

-- find_batches_without_lane
select b.service_id, b.batch_id, b.created_at, b.ended_at,
case when s.batch_seq is null then b.ended_at is not null else s.submitted end as submitted,
coalesce(s.dlt_status, b.dlt_status) as dlt_status,
coalesce(s.commit_proven, false) as commit_proven,
coalesce(s.earlier_may_arrive, false) as earlier_may_arrive,
coalesce(s.invalid_reported, false) as invalid_reported,
coalesce(s.attempts, b.attempts) as attempts,
coalesce(s.submitted_at, b.submitted_at) as submitted_at,
coalesce(s.since, b.ended_at) as since, coalesce(s.checked_at, b.checked_at) as checked_at,
s.next_try_at, coalesce(s.delays, 0) as delays, s.held_at, s.held_reason,
coalesce(s.held_until_decision, false) as held_until_decision,
coalesce(s.last_error, b.last_error) as last_error from (select ? as service_id, ? as batch_id) as x
join batches b on b.batch_id = x.batch_id and b.service_id = x.service_id
left join lanes s on s.service_id = b.service_id and s.batch_seq = b.seq

-- find_past_transactions
select p.transaction_key from (select ? as transaction_key) as x
join past_transactions p on p.transaction_key = x.transaction_key

-- find_services
select v.service_id,
(select count(*) from lanes s where s.service_id = v.service_id) as lanes
from (select ? as service_id) as x join services v on v.service_id = x.service_id

-- find_with_submitter
select s.service_id, s.lane, s.batch_id, s.attempts, s.epoch from lanes s
where s.busy and ((s.submitted and s.dlt_status is null))
and (s.service_id, s.lane) > (?, ?) and (select c.claimant from service_id_claims c where c.service_id = s.service_id) = ?
order by s.service_id, s.lane limit 500

-- forget_ended_of_client
delete from client_batches where batch_seq in (
select c.batch_seq from client_batches c
where c.client = ? and not exists (
select 1 from batches b where b.seq = c.batch_seq and b.ended_at is null)
order by c.batch_seq limit ? )

-- give_up_event
update webhooks set cursor = ?, attempts = 0, next_try_at = 0, last_error = ?,
leased_until = ?
where id = ? and lease = ?

-- hold_waiting
insert into waiting_holds (batch_seq, held_at, held_reason, cause)
values (?, ?, ?, 'OPERATOR')
on conflict (batch_seq) do update
set held_at = excluded.held_at, held_reason = excluded.held_reason, cause = excluded.cause

-- insert_client_batches
insert into client_batches (batch_seq, client) select batch_seq, client from (select ? as batch_seq, ? as client) as x

-- insert_commit_after_invalid
insert into commits_after_invalid (batch_seq, reported_at, source)
select b.seq, ?, ? from batches b
where b.batch_id = ? and b.service_id = ? and b.dlt_status = 'INVALID'
on conflict (batch_seq) do nothing

-- insert_failed_delivery
insert into failed_deliveries (webhook_id, message_id, body, attempts, error, failed_at)
values (?, ?, ?, ?, ?, ?)

-- insert_labelled_batches
insert into batches (service_id, batch_id, created_at, label)
select service_id, batch_id, created_at, label from (select ? as service_id, ? as batch_id, ? as created_at, ? as label) as x where true
order by service_id, created_at
returning seq, service_id, created_at

-- insert_past_transactions
insert into past_transactions (transaction_key) select transaction_key from (select ? as transaction_key) as x where true
on conflict (transaction_key) do nothing

-- insert_payloads_with_deadlines
insert into batch_payloads (batch_seq, declared_access, serialized_batch, deadline)
select batch_seq, declared_access, serialized_batch, deadline from (select ? as batch_seq, ? as declared_access, ? as serialized_batch, ? as deadline) as x

-- list_webhooks
select webhooks.id, webhooks.url, webhooks.services, webhooks.kinds, webhooks.created_at,
webhooks.attempts, webhooks.next_try_at, webhooks.last_error, webhooks.disabled_at,
webhooks.missed_at, (
select count(*) from failed_deliveries f where f.webhook_id = webhooks.id) as failed from webhooks order by webhooks.id

-- lock_event_feed
select f.removed_seq as seq from event_feed f where f.id = 1

-- lock_free_services
select v.service_id, cast(1 as bigint) as lanes from (select ? as service_id) as x
join services v on v.service_id = x.service_id
join lanes s on s.service_id = v.service_id
order by v.service_id

-- lock_instances
select i.paused from instances i order by i.instance_id

-- lock_pause
select c.paused_at, c.states_differ_at from service_id_claims c
where c.service_id = ?

-- lock_pause_of_all
select d.paused_at from database_state d where d.id = 1

-- lock_service_and_lanes
select v.service_id, cast(1 as bigint) as lanes
from services v join lanes s on s.service_id = v.service_id
where v.service_id = ? order by s.service_id, s.lane

-- next_batches
select b.service_id, b.batch_id
from (select ? as service_id) as x join lanes s on s.service_id = x.service_id
join batches b on b.service_id = s.service_id and b.ended_at is null
and b.created_at > s.created_at and b.created_at <= coalesce((
select n.created_at from batches n
where n.service_id = s.service_id
and n.created_at > s.created_at and n.ended_at is null
order by n.service_id, n.created_at limit 1 offset ?), ?)
where s.busy and (select c.claimant from service_id_claims c where c.service_id = s.service_id) = ?
order by b.service_id, b.created_at

-- note_token_use
update tokens as t set last_used_at = x.used_at from (select ? as token_id, ? as used_at) as x where t.token_id = x.token_id

-- oldest_event_groups
select g.seq, g.at, coalesce(g.xid, 0) as xid from event_groups g where g.seq > ?
order by g.seq limit ?

-- pause
update service_id_claims set paused_at = ? where service_id = ?

-- pause_all
update database_state set paused_at = ? where id = 1

-- pause_instances
update instances set paused = true

-- pending_batches
select s.service_id, s.batch_id, s.attempts, s.epoch, s.checked_at, s.submitted_at, s.held_at,
s.dlt_status, s.invalid_reported
from (select ? as service_id) as x join lanes s on s.service_id = x.service_id
where ((s.submitted and s.dlt_status = 'UNKNOWN') or (s.submitted and s.dlt_status = 'PENDING') or (s.submitted and s.dlt_status = 'VALID')) and (select c.claimant from service_id_claims c where c.service_id = s.service_id) = ?

-- read_delays
select s.service_id, s.batch_id, s.delays, s.delayed_since, s.refusals, s.not_accepted, s.pool_parked
from (select ? as service_id, ? as batch_id) as x join lanes s on s.service_id = x.service_id
where s.batch_id = x.batch_id

-- read_history
select (select h.is_known from service_histories h where h.service_id = ?) as is_known,
(select a.batch_id from lanes l
left join batches last on last.seq = l.last_committed_seq
join batches a on a.service_id = l.service_id
and a.created_at <= coalesce(last.created_at, 9223372036854775807)
where l.service_id = ? and l.lane = 0 and l.last_committed_seq is not null
and a.dlt_status = 'COMMITTED' and a.attempts > 0
order by a.created_at desc limit 1 offset 1) as anchor,
(select count(*) from batches b join declared_new_batches d on d.batch_seq = b.seq
where b.batch_id = ? and b.service_id = ?) as declared,
(select count(*) from lanes l
where l.service_id = ? and l.batch_id = ? and l.attempts - l.not_accepted > 1) as tried

-- ready_services
select distinct s.service_id from lanes s
where s.busy and ((not s.submitted and s.dlt_status is null) or (not s.submitted and s.dlt_status = 'DELAYED') or (not s.submitted and s.dlt_status = 'UNKNOWN')) and s.held_at is null and (s.next_try_at is null or s.next_try_at <= ?
or s.since > ?) and s.service_id > ? and (select case when c.paused_at is null then c.claimant end
from service_id_claims c where c.service_id = s.service_id)
= (select i.instance_id from instances i where i.instance_id = ? and not i.paused
and not i.draining)
order by s.service_id limit ?

-- redeliver_all
update failed_deliveries set again = true where webhook_id = ?

-- redeliver_one
update failed_deliveries set again = true where webhook_id = ? and id = ?

-- remember_removed_events
update event_feed as f
set removed_seq = x.seq,
removed_xid = case when f.removed_xid > x.xid then f.removed_xid else x.xid end
from (select ? as seq, ? as xid) as x where f.id = 1

-- remove_batch_events
delete from batch_events where batch_seq in (select x.seq from (select ? as seq) as x)

-- remove_client_batches
delete from client_batches where batch_seq in (select x.seq from (select ? as seq) as x)

-- remove_declared_new
delete from declared_new_batches where batch_seq in (select x.seq from (select ? as seq) as x)

-- remove_ended
delete from batches where seq in (
select b.seq from (select ? as seq) as x join batches b on b.seq = x.seq
where b.ended_at is not null and (
select count(*) from batch_events e where e.batch_seq = b.seq and e.at >= ?) = 0 and (
select count(*) from withdrawals w where w.batch_seq = b.seq) = 0 and (
select count(*) from halts h where h.batch_seq = b.seq) = 0 and (
select count(*) from changed_blockers c where c.batch_seq = b.seq) = 0 and (
b.dlt_status is null or b.dlt_status <> 'COMMITTED' or b.attempts = 0 or (
select count(*) from service_histories h where h.service_id = b.service_id) = 0 or (
select n.seq from batches n
where n.service_id = b.service_id and n.created_at > b.created_at
and n.dlt_status = 'COMMITTED' and n.attempts > 0
order by n.created_at limit 1 offset 1) is not null) order by b.seq )
returning seq, service_id, dlt_status

-- remove_event_groups
delete from event_groups where seq in (select x.seq from (select ? as seq) as x)

-- remove_failed_delivery
delete from failed_deliveries where id = ?

-- remove_old_attempts
delete from submission_attempts
where (batch_seq, attempt) in (select x.batch_seq, x.attempt from (select ? as batch_seq, ? as attempt) as x)

-- remove_payloads
delete from batch_payloads where batch_seq in (select x.seq from (select ? as seq) as x)

-- remove_unused_services
delete from services where service_id in (select x.service_id from (select ? as service_id) as x) and added = 0
and not exists (select 1 from service_id_claims c
where c.service_id = services.service_id)

-- remove_waiting_holds
delete from waiting_holds where batch_seq in (select x.batch_seq from (select ? as batch_seq) as x)

-- remove_webhook
delete from webhooks where id = ?

-- resume
update service_id_claims set paused_at = states_differ_at where service_id = ?

-- resume_all
update database_state set paused_at = null where id = 1

-- resume_instances
update instances set paused = false

-- revoke_token
update tokens set revoked_at = ?
where revoked_at is null and (token_id = ? or name = ?)

-- services_with_history
select h.service_id from (select ? as service_id) as x join service_histories h on h.service_id = x.service_id

-- set_history_known
insert into service_histories (service_id, is_known) values (?, true)
on conflict (service_id) do update set is_known = true

-- show_commit_after_invalid
update batches as b
set last_error = 'the batch ended as invalid, and the ledger reported later that it is committed'
where b.batch_id = ? and b.service_id = ?
returning seq, attempts

-- start_retention
update database_state set retention_at = ?
where id = 1 and (retention_at is null or retention_at <= ? or retention_at > ?)

-- take_webhook
update webhooks set lease = lease + 1, leased_until = ?
where id = ? and lease = ? and cursor = ?

-- unresolved_batches
select s.service_id, s.batch_id, s.epoch, s.batch_seq, s.not_accepted,
s.submitted, s.dlt_status, s.commit_proven,
s.earlier_may_arrive, s.invalid_reported, s.attempts, s.submitted_at, s.since, s.checked_at, s.next_try_at, s.last_error,
s.held_at, s.held_reason, s.held_until_decision,
(select p.deadline from batch_payloads p where p.batch_seq = s.batch_seq) as deadline
from (select ? as service_id, ? as batch_id) as x join lanes s on s.service_id = x.service_id
where s.batch_id = x.batch_id and ((s.submitted and s.dlt_status = 'UNKNOWN') or (s.submitted and s.dlt_status = 'PENDING') or (s.submitted and s.dlt_status = 'VALID')) and (select c.claimant from service_id_claims c where c.service_id = s.service_id) = ?

-- unresolved_transaction_ids
select x.batch_seq, own.transaction_id,
(select count(*) from transactions t join batches b on b.seq = t.batch_seq
where substr(t.transaction_id, 1, 7) = substr(own.transaction_id, 1, 7)
and t.transaction_id = own.transaction_id and b.service_id = x.service_id and b.seq <> x.batch_seq) as others
from (select ? as batch_seq, ? as service_id) as x join transactions own on own.batch_seq = x.batch_seq
order by x.batch_seq, own.position

-- webhook_exists
select w.id from webhooks w where w.id = ?

-- begin_different_states
update service_id_claims
set states_differ_at = case when paused_at = ? then paused_at + 1 else ? end,
paused_at = coalesce(paused_at, ?)
where service_id = ? and coalesce(claimant, null) = ? and states_differ_at is null

-- begin_drain
update instances set draining = true where instance_id = ?

-- being_sent
select s.service_id, s.batch_id, s.attempts, s.epoch from lanes s
where s.busy and ((s.submitted and s.dlt_status is null))
order by s.service_id, s.lane

-- being_sent_of_instance
select s.service_id, s.batch_id, s.attempts, s.epoch from lanes s
where s.busy and ((s.submitted and s.dlt_status is null))
and (select c.claimant from service_id_claims c where c.service_id = s.service_id)
in (select i.instance_id from instances i where i.instance_id = ? or i.name = ?)
order by s.service_id, s.lane

-- being_sent_of_service
select s.service_id, s.batch_id, s.attempts, s.epoch from lanes s
where s.service_id = ? and s.busy and ((s.submitted and s.dlt_status is null))
order by s.lane

-- complete_ledger
update ledger set identity = ? where id = 1 and identity = ?

-- confirm_ledger
update instances set ledger_id = 1 where instance_id = ? and ledger_id is null

-- count_claims
select (select count(*) from service_id_claims) as services,
(select count(*) from service_id_claims c where c.claimant = ?) as own,
(select count(*) from instances i where i.expiry_1 > cast(unixepoch('subsec') * 1000000 as integer)
and not i.draining) as instances

-- count_other_instances
select count(*) as instances from instances i
where i.instance_id <> ? and i.expiry_1 > cast(unixepoch('subsec') * 1000000 as integer) and not i.draining and (i.ledger_id is not null
or not exists (select 1 from ledger l where l.id = 1))

-- database_state
select d.server, d.timeline, d.synchronous, d.registrations, d.restored_at,
d.restored_reason,
(select i.renewals from instances i where i.instance_id = ?) as renewals,
cast(unixepoch('subsec') * 1000000 as integer) as now
from database_state d where d.id = 1

-- end_different_states
update service_id_claims
set paused_at = nullif(paused_at, states_differ_at), states_differ_at = null
where service_id = ? and coalesce(claimant, null) = ? and states_differ_at is not null

-- end_drain
update instances set draining = false where instance_id = ?

-- expire_earlier_run
update instances set name = null, expiry_1 = 0, expiry_2 = 0
where name = ? and expiry_1 <= cast(unixepoch('subsec') * 1000000 as integer)

-- find_ledger
select l.kind, l.identity, l.name, l.recorded_at from ledger l where l.id = 1

-- find_running_instances
select i.instance_id from instances i where i.expiry_1 > cast(unixepoch('subsec') * 1000000 as integer)
order by i.instance_id

-- find_stopped
select s.service_id, s.batch_id, s.attempts, s.epoch
from (select ? as service_id) as x
join service_id_claims c on c.service_id = x.service_id
join lanes s on s.service_id = x.service_id
where coalesce(c.claimant, null) = ? and s.busy and ((s.submitted and s.dlt_status is null))
and (c.paused_at is not null or s.held_at is not null or exists (
select 1 from instances i
where i.instance_id = ? and (i.paused or i.draining)))

-- former_instance
select i.draining from instances i where i.instance_id = ?

-- lock_claim
select c.claimant from service_id_claims c where c.service_id = ?

-- lock_fully_expired
select f.service_id
from (select c.service_id from service_id_claims c
where c.claimant = ? ) as f
join services v on v.service_id = f.service_id
join lanes l on l.service_id = v.service_id and l.lane = 0

limit ?

-- lock_idle_expired
select f.service_id
from (select c.service_id from service_id_claims c
where c.claimant = ? ) as f
join services v on v.service_id = f.service_id
join lanes l on l.service_id = v.service_id and l.lane = 0
where (select count(*) from lanes s where s.service_id = f.service_id and ((s.submitted and s.dlt_status is null))) = 0
limit ?

-- lock_idle_expired_named
select f.service_id
from (select c.service_id
from (select ? as service_id) as x join service_id_claims c on c.service_id = x.service_id
where coalesce(c.claimant, null) = ? ) as f
join services v on v.service_id = f.service_id
join lanes l on l.service_id = v.service_id and l.lane = 0
where (select count(*) from lanes s where s.service_id = f.service_id and ((s.submitted and s.dlt_status is null))) = 0
limit ?

-- lock_instance
select i.instance_id, i.draining from instances i
where (i.instance_id = ? or i.name = ?) and i.expiry_2 > cast(unixepoch('subsec') * 1000000 as integer)

-- lock_own_claims
select f.service_id
from (select c.service_id from service_id_claims c
where c.claimant = ? ) as f
where (select count(*) from lanes s where s.service_id = f.service_id and ((s.submitted and s.dlt_status is null))) = 0
limit ?

-- lock_own_claims_named
select f.service_id
from (select c.service_id
from (select ? as service_id) as x join service_id_claims c on c.service_id = x.service_id
where coalesce(c.claimant, null) = ? ) as f
where (select count(*) from lanes s where s.service_id = f.service_id and ((s.submitted and s.dlt_status is null))) = 0
limit ?

-- lock_surplus_claims
select f.service_id
from (select c.service_id from service_id_claims c
where c.claimant = ? ) as f
where (select count(*) from lanes s where s.service_id = f.service_id and s.submitted) = 0
limit ?

-- lock_unclaimed
select f.service_id
from (select c.service_id from service_id_claims c
where c.claimant is null ) as f
join services v on v.service_id = f.service_id
join lanes l on l.service_id = v.service_id and l.lane = 0

limit ?

-- record_ledger
insert into ledger (id, kind, identity, name, recorded_at) values (1, ?, ?, ?, ?)
on conflict (id) do nothing

-- release_claim
update service_id_claims set claimant = null
where service_id_claims.service_id = ? and (select count(*) from lanes s where s.service_id = service_id_claims.service_id and ((s.submitted and s.dlt_status is null))) = 0

-- release_claims
update service_id_claims set claimant = null
from (select ? as service_id) as x
where service_id_claims.service_id = x.service_id and (select count(*) from lanes s where s.service_id = x.service_id and ((s.submitted and s.dlt_status is null))) = 0

-- remove_expired_instances
delete from instances where instance_id in (
select i.instance_id from instances i
where i.expiry_2 <= cast(unixepoch('subsec') * 1000000 as integer) and not exists (
select 1 from service_id_claims c where c.claimant = i.instance_id)
)

-- remove_ledger
delete from ledger where id = 1

-- renew
update instances set expiry_1 = t.now + ?, expiry_2 = t.now + ?,
renewals = instances.renewals + 1
from (select cast(unixepoch('subsec') * 1000000 as integer) as now) as t
where instance_id = ? and expiry_2 > 0
returning renewals, draining

-- unregister
delete from instances where instance_id = ? and not exists (
select 1 from service_id_claims c where c.claimant = instances.instance_id)

