//! Takes a round: the batches in lanes that can be taken now, according to the strategies of their services.

use std::collections::{BTreeSet, HashMap, HashSet};

use diesel::QueryableByName;
use grid_batch_core::batches::{BatchState, Change, Event};
use grid_batch_core::events::EventKind;
use grid_batch_core::ledger::{AttemptId, Outcome};
use grid_batch_core::queue::{
    AnyStrategy, BatchFits, InLane, Round, RoundStore, ServiceShare, Strategy, TakenBatch,
};
use grid_batch_core::{BatchResult, ServiceId, Timestamp};

use crate::{
    batch::{record, with_locked},
    events::{NewEvent, insert_events},
    halts::first_halt,
    restored::CountedSend,
    scheduling::find_declared,
    sql::{
        ClaimStore, Connection, Dialect, Rows, Statement, Store, StoreError,
        claim_handle::micros,
        result_row,
        rows::{
            AHEAD, AttemptRow, ServiceRow, confirmed_ledger, is_ready, limit, progress,
            read_deadline, read_trace, service_id, service_rows, takeable_by,
        },
    },
};

/// The instance that takes a round, and the maximum duration of its submissions.
#[derive(Clone, Copy)]
struct RoundOwner<'a> {
    instance: &'a str,
    /// In microseconds.
    longest_submission: i64,
}

impl ClaimStore {
    /// Takes the next batch of each of these services that is claimed and has a batch to submit, like
    /// [`take_round`](Self::take_round) with a share of one batch for each.
    pub fn take_next(&self, services: &[ServiceId]) -> Result<Vec<TakenBatch>, StoreError> {
        let shares: Vec<ServiceShare> =
            services.iter().cloned().map(ServiceShare::of_one).collect();
        Ok(take_round(self, &shares, &mut |_| true)?.batches)
    }
}

impl RoundStore for ClaimStore {
    fn ready_services(
        &self,
        after: Option<&ServiceId>,
        count: usize,
    ) -> BatchResult<Vec<ServiceId>> {
        let store = &self.store;
        let (instance, now) = (self.instance(), store.now().as_micros());
        let after = after.map_or("", ServiceId::as_str);
        let (ready, claimed) = (is_ready("s"), takeable_by("s"));
        let statement = Statement::new(format!(
            "-- ready_services
             select distinct s.service_id from lanes s
             where {ready} and s.service_id > ? and {claimed}
             order by s.service_id limit ?"
        ))
        .long(/* next_try_at */ now)
        .long(/* since */ now.saturating_add(AHEAD))
        .text(after)
        .text(/* claimant */ instance.as_str())
        .long(limit(count));
        let rows: Vec<ServiceRow> = store.pools.read()?.load(&statement)?;
        Ok(rows.iter().filter_map(|row| store.unreadable.read(row.name())).collect())
    }

    /// Takes at most as many batches of each service as its share, in the order of the shares and of each service, and
    /// marks them durably as being with a submitter. Takes nothing if a submission could outlast the full expiry.
    ///
    /// Batches that are under way, delayed or held are not taken. `fits` is called with the length of each batch before
    /// any bytes are read.
    fn take_round(&self, shares: &[ServiceShare], fits: &mut BatchFits<'_>) -> BatchResult<Round> {
        Ok(take_round(self, shares, fits)?)
    }

    /// They can be taken again at once.
    fn give_back(&self, batches: &[TakenBatch]) -> BatchResult<()> {
        let now = self.store.now();
        let not_sent = |taken: &TakenBatch| {
            let event = Event::Outcome { attempt: taken.attempt, outcome: Outcome::NotSent };
            Change {
                epoch: Some(taken.epoch),
                error: Some("given back before it was sent".to_owned()),
                retry_at: Some(now),
                ..Change::new(taken.service_id.clone(), taken.batch_id, event)
            }
        };
        let changes: Vec<Change> = batches.iter().map(not_sent).collect();
        record(&self.store, &changes).complete()?;
        Ok(())
    }
}

/// Takes the batches that fit, in the order of `shares` and of each service.
fn take_round(
    claims: &ClaimStore,
    shares: &[ServiceShare],
    fits: &mut BatchFits<'_>,
) -> Result<Round, StoreError> {
    let (store, instance) = (&claims.store, claims.instance());
    let longest_submission = micros(claims.options.longest_submission);
    let owner = RoundOwner { instance: instance.as_str(), longest_submission };
    let now = store.now().as_micros();
    let find = |connection: &mut Connection, locked: &BTreeSet<ServiceId>| {
        find_candidates(store, connection, owner.instance, now, shares, locked)
    };
    let mut take = |connection: &mut Connection, batches| {
        let round = take_fitting(store, connection, owner, now, batches, fits)?;
        let is_empty = round.batches.is_empty();
        let counted = if is_empty { None } else { CountedSend::count(store, connection)? };
        Ok::<_, StoreError>((round, counted))
    };
    let taken = store.pools.write()?.write_transaction(|connection| {
        let Candidates { batches, to_lock } = find(connection, &BTreeSet::new())?;
        if to_lock.is_empty() {
            take(connection, batches).map(Ok)
        } else {
            Ok::<_, StoreError>(Err(to_lock))
        }
    })?;
    let taken = taken.or_else(|to_lock| {
        with_locked(store, &to_lock, |connection, locked| {
            let candidates = find(connection, locked)?;
            take(connection, candidates.batches)
        })
    });
    store.scheduler.events().committed();
    let (round, counted) = taken?;
    CountedSend::committed(counted, store);
    Ok(round)
}

fn take_fitting(
    store: &Store,
    connection: &mut Connection,
    owner: RoundOwner<'_>,
    now: i64,
    candidates: Vec<Candidate>,
    fits: &mut BatchFits<'_>,
) -> Result<Round, StoreError> {
    // Without one batch of a list, those behind it are not taken either.
    let mut cut: Option<ServiceId> = None;
    let (fitting, others): (Vec<Candidate>, Vec<Candidate>) =
        candidates.into_iter().partition(|candidate| {
            let is_cut = candidate.joins_list && cut.as_ref() == Some(&candidate.service_id);
            let fits = !is_cut && fits(candidate.bytes());
            cut = if fits { None } else { Some(candidate.service_id.clone()) };
            fits
        });
    let mut left: Vec<ServiceId> = others.into_iter().map(|it| it.service_id).collect();
    left.dedup();
    Ok(Round { batches: take(store, connection, owner, now, &fitting)?, left })
}

fn take(
    store: &Store,
    connection: &mut Connection,
    owner: RoundOwner<'_>,
    now: i64,
    batches: &[Candidate],
) -> Result<Vec<TakenBatch>, StoreError> {
    let statement = take_round_statement(connection.dialect(), owner, now, batches);
    let mut rows: Vec<TakenRow> = connection.load(&statement)?;
    let order: HashMap<(&str, i32), usize> =
        (0..).zip(batches).map(|(n, it)| ((it.service_id.as_str(), it.lane), n)).collect();
    rows.sort_by_cached_key(|row| order.get(&row.lane_key()).copied());
    let candidate = |row: &TakenRow| batches.get(*order.get(&row.lane_key())?);
    check_lists(batches, rows.iter().filter_map(candidate))?;
    let event = |row: &TakenRow| Some(row.submitted(candidate(row)?.batch_seq));
    let events: Vec<NewEvent> = rows.iter().filter_map(event).collect();
    insert_events(connection, store.scheduler.events(), &events, Timestamp::from_micros(now))?;
    let joins_list: Vec<bool> =
        rows.iter().map(|row| candidate(row).is_some_and(|it| it.joins_list)).collect();
    let taken = rows.into_iter().zip(joins_list);
    taken.map(|(row, joins_list)| Ok(TakenBatch { joins_list, ..row.into_taken()? })).collect()
}

/// Fails if some batches of a list were taken and others not. The locks of their services prevent that.
fn check_lists<'a>(
    batches: &[Candidate],
    taken: impl Iterator<Item = &'a Candidate>,
) -> Result<(), StoreError> {
    let taken: HashSet<i64> = taken.map(|it| it.batch_seq).collect();
    let is_taken = |batch: &Candidate| taken.contains(&batch.batch_seq);
    let is_torn = |pair: &[Candidate]| matches!(pair, [before, batch] if batch.joins_list && is_taken(before) != is_taken(batch));
    if batches.windows(2).any(is_torn) {
        return Err(StoreError::corrupt("only some batches of a locked list were taken"));
    }
    Ok(())
}

/// Marks batches as submitted and reads their bytes in one statement, while the lease of the
/// instance is long enough for a submission and its ledger is the one that the database is bound to.
///
/// `batch_seq` ensures that the locked batch is the candidate, and the one that the statement sees. If another
/// transaction has installed the next head, its bytes would not be visible yet.
///
/// Claims are locked before lanes, so that lanes of other instances are never locked. A pause also locks the row of the
/// claim, so nothing is taken after it. A pause of all services and a drain lock the row of the instance.
///
/// `coalesce` makes the planner look up claims by their services rather than by their claimant, which has many.
fn take_round_statement<'a>(
    dialect: Dialect,
    owner: RoundOwner<'a>,
    now: i64,
    batches: &'a [Candidate],
) -> Statement<'a> {
    let (ready, clock, confirmed) = (is_ready("h"), dialect.clock(), confirmed_ledger("i"));
    let lock = dialect.locking("for key share of c skip locked for update of h skip locked");
    let lock_instance = dialect.locking("for key share of i");
    Statement::new(format!(
        "-- take_round
         update lanes
         set submitted = true, dlt_status = null, attempts = lanes.attempts + 1,
             submitted_at = ?, since = ?, next_try_at = null
         from (
             select h.service_id, h.lane, h.batch_seq
             from {{x}}
             join service_id_claims c on c.service_id = x.service_id
             join lanes h on h.service_id = x.service_id and h.lane = x.lane
             where coalesce(c.claimant, null) = ? and c.paused_at is null
                 and h.batch_seq = x.batch_seq and {ready}
                 and exists (
                 select 1 from instances i
                 where i.instance_id = ? and i.expiry_1 > {clock} and i.expiry_2 > {clock} + ?
                     and {confirmed} and not i.paused and not i.draining {lock_instance})
             {lock}
         ) as r
         where lanes.service_id = r.service_id and lanes.lane = r.lane
             and lanes.batch_seq = r.batch_seq
         returning lanes.service_id, lanes.lane, lanes.batch_id, lanes.attempts, lanes.epoch, (
                 select p.serialized_batch from batch_payloads p
                 where p.batch_seq = lanes.batch_seq
             ) as serialized_batch, (
                 select p.deadline from batch_payloads p
                 where p.batch_seq = lanes.batch_seq
             ) as deadline, (
                 select b.trace from batches b where b.seq = lanes.batch_seq
             ) as trace"
    ))
    .long(/* submitted_at */ now)
    .long(/* since */ now)
    .rows(
        Rows::default()
            .text("service_id", batches.iter().map(|batch| batch.service_id.as_str()))
            .int("lane", batches.iter().map(|batch| batch.lane))
            .long("batch_seq", batches.iter().map(|batch| batch.batch_seq))
            .in_chunks(),
    )
    .text(/* claimant */ owner.instance)
    .long(/* next_try_at */ now)
    .long(/* since */ now.saturating_add(AHEAD))
    .text(/* instance_id */ owner.instance)
    .long(owner.longest_submission)
}

result_row! {
    struct TakenRow {
        lane: i32,
        serialized_batch: Vec<u8>,
        deadline: Option<String>,
        trace: Option<String>,
        #[diesel(embed)]
        attempt: AttemptRow,
    }
}

impl TakenRow {
    fn lane_key(&self) -> (&str, i32) {
        (&self.attempt.service_id, self.lane)
    }

    fn submitted(&self, batch_seq: i64) -> NewEvent {
        NewEvent {
            batch_seq,
            kind: EventKind::Submitted,
            state: BatchState::Submitting,
            attempt: self.attempt.attempts.unsigned_abs(),
            detail: None,
        }
    }

    fn into_taken(self) -> Result<TakenBatch, StoreError> {
        let (service_id, batch_id, AttemptId { attempt, epoch }) = self.attempt.read()?;
        let (deadline, trace) = (read_deadline(self.deadline)?, read_trace(self.trace)?);
        let serialized_batch = self.serialized_batch;
        Ok(TakenBatch {
            service_id,
            batch_id,
            attempt,
            epoch,
            serialized_batch,
            deadline,
            trace,
            joins_list: false,
        })
    }
}

/// A batch in a lane.
#[derive(Debug, Clone)]
struct Candidate {
    service_id: ServiceId,
    lane: i32,
    batch_seq: i64,
    position: i64,
    /// Whether its service has several lanes because of a parked pool.
    by_pool: bool,
    /// The batch that it waits for.
    blocker_seq: Option<i64>,
    /// Whether it is sent in one request with the candidate before it.
    joins_list: bool,
    in_lane: InLane,
    /// Its size in bytes, if it can be taken as far as other batches of its service do not prevent it.
    length: Option<usize>,
}

impl Candidate {
    /// A batch without a length is not chosen.
    fn bytes(&self) -> usize {
        self.length.unwrap_or(0)
    }
}

/// The batches that a round may take.
struct Candidates {
    /// In the order of the shares and of each service.
    batches: Vec<Candidate>,
    /// The services of which none can be taken before they are locked.
    to_lock: BTreeSet<ServiceId>,
}

/// The batches of this instance's services that a round may take.
///
/// Services with an order among several lanes are `locked`, so that the result remains valid until the round is taken,
/// because all other changes of a lane first lock its service. Other lanes are not locked, because the round takes a
/// batch only if it is still there. Batches after an invalid one that stops its service are not sent, even if they were
/// already in a lane.
fn find_candidates(
    store: &Store,
    connection: &mut Connection,
    instance: &str,
    now: i64,
    shares: &[ServiceShare],
    locked: &BTreeSet<ServiceId>,
) -> Result<Candidates, StoreError> {
    let mut lanes = load_lanes(connection, instance, now, shares)?;
    // Each service has one rule for the whole round, because the size of lists may change meanwhile.
    let strategies: HashMap<&ServiceId, AnyStrategy> = shares
        .iter()
        .map(|share| (&share.service_id, store.scheduler.strategy(&share.service_id)))
        .collect();
    let needs_lock = |service: &&ServiceId| {
        let lanes = lanes.get(*service).map_or(&[][..], Vec::as_slice);
        lanes.len() > 1
            && store.dialect().locks_rows()
            && !locked.contains(*service)
            && (strategies[*service].keeps_order() || list(strategies[*service], lanes) > 0)
    };
    let services = shares.iter().map(|share| &share.service_id);
    let to_lock: BTreeSet<ServiceId> = services.filter(needs_lock).cloned().collect();
    lanes.retain(|service, _| !to_lock.contains(service));
    mark_not_overtaken(store, connection, &mut lanes)?;
    let mut chosen = Vec::new();
    for share in shares {
        // If a service is named twice, only the first share counts.
        let lanes = lanes.remove(&share.service_id).unwrap_or_default();
        let strategy = strategies[&share.service_id];
        let in_lanes: Vec<InLane> = lanes.iter().map(|lane| lane.in_lane).collect();
        let list = list_of_declared(connection, &lanes[..list(strategy, &lanes)])?;
        let mut next = strategy.next(&in_lanes);
        next.retain(|next| *next >= list);
        next.splice(..0, 0..list);
        if store.scheduler.may_stop() && strategy.keeps_order() && !next.is_empty() {
            let halt = first_halt(connection, &share.service_id)?;
            next.retain(|next| !strategy.is_stopped(lanes[*next].position, halt));
        }
        let candidate = |next: usize| {
            let joins_list = (1..list).contains(&next);
            Candidate { joins_list, ..lanes[next].clone() }
        };
        chosen.extend(next.into_iter().take(share.batches).map(candidate));
    }
    Ok(Candidates { batches: chosen, to_lock })
}

/// How many of the first batches in lanes are sent in one request. The limit on bytes keeps lists well below what a node
/// accepts. A batch that waits for anything but a batch of the list ends it.
fn list(strategy: AnyStrategy, lanes: &[Candidate]) -> usize {
    const MOST_BYTES: usize = 4 << 20;
    let in_lanes: Vec<InLane> = lanes.iter().map(|lane| lane.in_lane).collect();
    let (mut bytes, mut listed) = (0, HashSet::new());
    let can_be_listed = |lane: &&Candidate| {
        bytes += lane.bytes();
        let waits = lane.blocker_seq.is_some_and(|seq| !listed.contains(&seq));
        listed.insert(lane.batch_seq);
        bytes <= MOST_BYTES && !waits
    };
    let first = &lanes[..strategy.list(&in_lanes)];
    with_conflict(first, first.iter().take_while(can_be_listed).count())
}

/// How many of these can be sent in one request by what they declare. The ledger itself reads what a batch that writes
/// everything may write, such as settings, so the order in a block would not show in the results of others.
fn list_of_declared(connection: &mut Connection, list: &[Candidate]) -> Result<usize, StoreError> {
    if list.is_empty() {
        return Ok(0);
    }
    let positioned = |lane: &Candidate| (lane.batch_seq, lane.service_id.clone(), lane.position);
    let declared = find_declared(connection, &list.iter().map(positioned).collect::<Vec<_>>())?;
    let some = declared.iter().take_while(|batch| !batch.access.writes_everything());
    Ok(with_conflict(list, some.count()))
}

/// This many of the first, or none if none of these waits for another.
fn with_conflict(first: &[Candidate], count: usize) -> usize {
    if first[..count].iter().any(|lane| lane.blocker_seq.is_some()) { count } else { 0 }
}

/// Marks the batches in lanes by pool that no other batch overtakes. Few services have such lanes.
fn mark_not_overtaken(
    store: &Store,
    connection: &mut Connection,
    lanes: &mut HashMap<ServiceId, Vec<Candidate>>,
) -> Result<(), StoreError> {
    let by_pool = lanes.values().flatten().filter(|lane| lane.by_pool);
    let by_pool: Vec<i64> = by_pool.map(|lane| lane.batch_seq).collect();
    if by_pool.is_empty() {
        return Ok(());
    }
    let not_overtaken = store.scheduler.hooks().not_overtaken(connection, &by_pool)?;
    for lane in lanes.values_mut().flatten() {
        lane.in_lane.goes_first = not_overtaken.contains(&lane.batch_seq);
    }
    Ok(())
}

/// The batches in the lanes of this instance's services, in the order of each service.
fn load_lanes(
    connection: &mut Connection,
    instance: &str,
    now: i64,
    shares: &[ServiceShare],
) -> Result<HashMap<ServiceId, Vec<Candidate>>, StoreError> {
    let ready = is_ready("h");
    let statement = Statement::new(
        format!(
            "-- round_candidates
             select h.service_id, h.lane, h.batch_seq, coalesce(h.position, h.created_at) as position,
                 h.submitted, h.dlt_status, h.blocker_seq, h.earlier_may_arrive,
                 h.held_at is not null as is_held, h.pool_parked, h.by_pool,
                 case when {ready} then (
                     select cast(length(p.serialized_batch) as bigint) from batch_payloads p
                     where p.batch_seq = h.batch_seq) end as length
             from {{x}}
             join service_id_claims c on c.service_id = x.service_id
             join lanes h on h.service_id = x.service_id
             where coalesce(c.claimant, null) = ? and c.paused_at is null and h.busy"
        ),
    )
    .long(/* next_try_at */ now)
    .long(/* since */ now.saturating_add(AHEAD))
    .rows(service_rows(shares.iter().map(|share| &share.service_id)).in_chunks())
    .text(/* claimant */ instance);
    let rows: Vec<CandidateRow> = connection.load(&statement)?;
    let mut lanes: HashMap<ServiceId, Vec<Candidate>> = HashMap::new();
    for row in rows {
        let candidate = row.read()?;
        lanes.entry(candidate.service_id.clone()).or_default().push(candidate);
    }
    for of_service in lanes.values_mut() {
        of_service.sort_unstable_by_key(|lane| lane.position);
    }
    Ok(lanes)
}

result_row! {
    struct CandidateRow {
        service_id: String,
        lane: i32,
        batch_seq: i64,
        position: i64,
        submitted: bool,
        dlt_status: Option<String>,
        blocker_seq: Option<i64>,
        earlier_may_arrive: bool,
        is_held: bool,
        pool_parked: bool,
        by_pool: bool,
        length: Option<i64>,
    }
}

impl CandidateRow {
    fn read(self) -> Result<Candidate, StoreError> {
        let length = self.length.map(usize::try_from).transpose().map_err(StoreError::corrupt)?;
        let state = progress(self.submitted, self.dlt_status.as_deref(), 0)?.state;
        Ok(Candidate {
            service_id: service_id(&self.service_id)?,
            lane: self.lane,
            batch_seq: self.batch_seq,
            position: self.position,
            by_pool: self.by_pool,
            blocker_seq: self.blocker_seq,
            joins_list: false,
            in_lane: InLane {
                state,
                is_ready: length.is_some(),
                is_held: self.is_held,
                is_blocked: self.blocker_seq.is_some(),
                // Only its pool is parked, and the batch is not due yet.
                may_be_overtaken: self.pool_parked
                    && state == BatchState::Delayed
                    && length.is_none(),
                may_arrive_late: self.earlier_may_arrive,
                goes_first: false,
            },
            length,
        })
    }
}
