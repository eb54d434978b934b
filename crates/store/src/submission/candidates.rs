//! Which batches in lanes can be taken now.

use std::collections::{BTreeSet, HashMap};

use diesel::{
    QueryableByName,
    sql_types::{BigInt, Bool, Integer, Nullable, Text},
};
use grid_batch_core::{BatchState, InLane, ServiceId, ServiceShare};

use crate::{
    scheduling::first_halt,
    sql::{
        Connection, Dialect, Statement, Store, StoreError,
        rows::{AHEAD, has_open_nonce, is_ready, progress, service_id, service_rows},
    },
};

/// A batch in a lane.
#[derive(Debug, Clone)]
pub(super) struct Candidate {
    pub(super) service_id: ServiceId,
    pub(super) lane: i32,
    pub(super) batch_seq: i64,
    position: i64,
    in_lane: InLane,
    /// How many bytes it has, if it can be taken, unless another batch of its service prevents it.
    length: Option<usize>,
}

impl Candidate {
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
            && store.dialect().locks_rows()
            && !locked.contains(*service)
            && store.scheduler.strategy(service).keeps_order()
    };
    let services = shares.iter().map(|share| &share.service_id);
    let to_lock: BTreeSet<ServiceId> = services.filter(needs_lock).cloned().collect();
    lanes.retain(|service, _| !to_lock.contains(service));
    let mut chosen = Vec::new();
    for share in shares {
        // A service that is named twice gives the first share only.
        let lanes = lanes.remove(&share.service_id).unwrap_or_default();
        let strategy = store.scheduler.strategy(&share.service_id);
        let in_lanes: Vec<InLane> = lanes.iter().map(|lane| lane.in_lane).collect();
        let mut next = strategy.next(&in_lanes);
        if store.scheduler.may_stop() && strategy.keeps_order() && !next.is_empty() {
            let halt = first_halt(connection, &share.service_id)?;
            next.retain(|next| !strategy.is_stopped(lanes[*next].position, halt));
        }
        chosen.extend(next.into_iter().take(share.batches).map(|next| lanes[next].clone()));
    }
    Ok(Candidates { batches: chosen, to_lock })
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
    let (ready, has_nonce) = (is_ready("h"), has_open_nonce("h.batch_seq"));
    Statement::new(
        dialect,
        format!(
            "-- round_candidates
             select h.service_id, h.lane, h.batch_seq, coalesce(h.position, h.created_at) as position,
                 h.submitted, h.dlt_status, h.blocker_seq is not null as is_blocked,
                 h.held_at is not null as is_held, h.pool_parked,
                 case when h.by_pool then {has_nonce} else false end as has_nonce,
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
    has_nonce: bool,
    #[diesel(sql_type = Nullable<BigInt>)]
    length: Option<i64>,
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
            in_lane: InLane {
                state,
                is_ready: length.is_some(),
                is_held: self.is_held,
                is_blocked: self.is_blocked,
                // Only its pool is parked, and it is not tried again yet.
                may_be_overtaken: self.pool_parked
                    && state == BatchState::Delayed
                    && length.is_none(),
                // A ledger takes nonces in order.
                goes_first: self.has_nonce,
            },
            length,
        })
    }
}
