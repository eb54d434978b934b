//! Which batches in lanes can be taken now.

use std::collections::{BTreeSet, HashMap};

use diesel::{
    QueryableByName,
    sql_types::{BigInt, Bool, Integer, Nullable, Text},
};
use grid_batch_core::{BatchState, ServiceId, ServiceShare, Strategy};

use crate::{
    scheduling::first_halt,
    sql::{
        Connection, Dialect, Statement, Store, StoreError,
        rows::{AHEAD, is_ready, progress, service_rows},
    },
};

/// A batch in a lane.
#[derive(Debug, Clone)]
pub(super) struct Candidate {
    pub(super) service_id: ServiceId,
    pub(super) lane: i32,
    pub(super) batch_seq: i64,
    state: BatchState,
    position: i64,
    /// An earlier batch that it conflicts with is open.
    is_blocked: bool,
    /// It waits for an operator, and what follows it in a pipeline waits for it.
    is_held: bool,
    /// Batches of other pools may overtake it while it cannot be taken.
    pool_parked: bool,
    /// Its service has several lanes because of a parked pool.
    by_pool: bool,
    /// No other batch of these lanes overtakes it.
    is_not_overtaken: bool,
    /// How many bytes it has, if it can be taken, unless another batch of its service prevents it.
    length: Option<usize>,
}

impl Candidate {
    fn is_in_order_at_ledger(&self) -> bool {
        matches!(self.state, BatchState::Pending | BatchState::Valid) && !self.is_held
    }

    /// Only its pool is parked, and it is not tried again yet.
    fn can_be_overtaken(&self) -> bool {
        self.pool_parked && self.state == BatchState::Delayed && self.length.is_none()
    }

    /// A batch without a length is not chosen.
    pub(super) fn bytes(&self) -> usize {
        self.length.unwrap_or(0)
    }
}

/// What a round may take.
pub(super) struct Candidates {
    /// In the order of the shares and of each service.
    pub(super) batches: Vec<Candidate>,
    /// The services that give none before they are locked.
    pub(super) to_lock: BTreeSet<ServiceId>,
}

/// The batches that a round may take of this instance's services.
///
/// Services with an order among several lanes are `locked`, so that it stays true until the round is
/// taken: all other changes of a lane lock its service before. Other lanes are not locked: the round
/// takes a batch only if it is still there. What is behind an invalid batch that stops its service is
/// not sent, also if it was in a lane before.
pub(super) fn find_candidates(
    store: &Store,
    connection: &mut Connection,
    instance: &str,
    now: i64,
    shares: &[ServiceShare],
    locked: &BTreeSet<ServiceId>,
) -> Result<Candidates, StoreError> {
    let mut lanes = load_lanes(connection, instance, now, shares)?;
    let needs_lock = |service: &&ServiceId| {
        let lanes = lanes.get(*service).map_or(0, Vec::len);
        lanes > 1
            && store.scheduler.of(service).strategy != Strategy::Parallel
            && store.dialect().locks_rows()
            && !locked.contains(*service)
    };
    let services = shares.iter().map(|share| &share.service_id);
    let to_lock: BTreeSet<ServiceId> = services.filter(needs_lock).cloned().collect();
    lanes.retain(|service, _| !to_lock.contains(service));
    mark_not_overtaken(store, connection, &mut lanes)?;
    let mut chosen = Vec::new();
    for share in shares {
        // A service that is named twice gives the first share only.
        let lanes = lanes.remove(&share.service_id).unwrap_or_default();
        let strategy = store.scheduler.of(&share.service_id).strategy;
        let mut next = choose(strategy, lanes);
        if store.scheduler.may_stop() && strategy != Strategy::Parallel && !next.is_empty() {
            let halt = first_halt(connection, &share.service_id)?;
            next.retain(|lane| halt.is_none_or(|halt| lane.position < halt));
        }
        chosen.extend(next.into_iter().take(share.batches));
    }
    Ok(Candidates { batches: chosen, to_lock })
}

/// Marks the batches in lanes by pool that no other one overtakes. Few services have such lanes.
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
        lane.is_not_overtaken = not_overtaken.contains(&lane.batch_seq);
    }
    Ok(())
}

/// Which of the lanes of a service, in the order of their batches, can be taken now.
fn choose(strategy: Strategy, lanes: Vec<Candidate>) -> Vec<Candidate> {
    let is_ready = |lane: &Candidate| lane.length.is_some();
    let next = match strategy {
        Strategy::Parallel => {
            return lanes.into_iter().filter(|lane| is_ready(lane) && !lane.is_blocked).collect();
        }
        Strategy::Serial => lanes
            .iter()
            .position(|lane| lane.is_not_overtaken)
            .or_else(|| lanes.iter().position(|lane| !lane.can_be_overtaken())),
        Strategy::Pipeline => lanes.iter().position(|lane| lane.state.awaits_queuer()),
    };
    let can_be_next = |next: &usize| {
        let (before, rest) = lanes.split_at(*next);
        let keeps_order =
            |lane: &Candidate| strategy == Strategy::Pipeline && lane.is_in_order_at_ledger();
        before.iter().all(|lane| !lane.state.submitted() || keeps_order(lane))
            && rest.iter().skip(1).all(|lane| !lane.state.submitted())
            && rest.first().is_some_and(is_ready)
    };
    next.filter(can_be_next).map(|next| lanes[next].clone()).into_iter().collect()
}

/// The batches in the lanes of this instance's services, in the order of each service.
fn load_lanes(
    connection: &mut Connection,
    instance: &str,
    now: i64,
    shares: &[ServiceShare],
) -> Result<HashMap<ServiceId, Vec<Candidate>>, StoreError> {
    let statement = candidates_statement(connection.dialect(), instance, now, shares);
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

fn candidates_statement<'a>(
    dialect: Dialect,
    instance: &'a str,
    now: i64,
    shares: &'a [ServiceShare],
) -> Statement<'a> {
    let ready = is_ready("h");
    Statement::new(
        dialect,
        format!(
            "-- round_candidates
             select h.service_id, h.lane, h.batch_seq, coalesce(h.position, h.created_at) as position,
                 h.submitted, h.dlt_status, h.blocker_seq is not null as is_blocked,
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
    .text(/* claimant */ instance)
}

#[derive(QueryableByName)]
struct CandidateRow {
    #[diesel(sql_type = Text)]
    service_id: String,
    #[diesel(sql_type = Integer)]
    lane: i32,
    #[diesel(sql_type = BigInt)]
    batch_seq: i64,
    #[diesel(sql_type = BigInt)]
    position: i64,
    #[diesel(sql_type = Bool)]
    submitted: bool,
    #[diesel(sql_type = Nullable<Text>)]
    dlt_status: Option<String>,
    #[diesel(sql_type = Bool)]
    is_blocked: bool,
    #[diesel(sql_type = Bool)]
    is_held: bool,
    #[diesel(sql_type = Bool)]
    pool_parked: bool,
    #[diesel(sql_type = Bool)]
    by_pool: bool,
    #[diesel(sql_type = Nullable<BigInt>)]
    length: Option<i64>,
}

impl CandidateRow {
    fn read(self) -> Result<Candidate, StoreError> {
        let length = self.length.map(usize::try_from).transpose().map_err(StoreError::corrupt)?;
        Ok(Candidate {
            service_id: crate::sql::rows::service_id(&self.service_id)?,
            lane: self.lane,
            batch_seq: self.batch_seq,
            state: progress(self.submitted, self.dlt_status.as_deref(), 0)?.state,
            position: self.position,
            is_blocked: self.is_blocked,
            is_held: self.is_held,
            pool_parked: self.pool_parked,
            by_pool: self.by_pool,
            is_not_overtaken: false,
            length,
        })
    }
}
