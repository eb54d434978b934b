//! Evaluates the transactions that a batch depends on: another batch may have to end first, the ledger may have to be
//! asked, or the batch cannot be submitted.

use std::collections::HashMap;

use grid_batch_core::batches::DltStatus;
use grid_batch_core::{ItemId, ServiceId};

use super::{PositionedBatch, number_of};
use crate::sql::{
    Connection, Rows, StoreError, result_row,
    rows::{batch_id, same_transaction, service_id},
};

/// What a batch must wait for because of its dependencies. A batch without such a state has no open dependencies.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum DependencyState {
    /// A batch with one of its dependencies is open.
    Waits {
        /// The other batch.
        blocker_seq: i64,
        /// Its service.
        service_id: ServiceId,
    },
    /// These transactions are in no batch that can be submitted before it. The ledger is asked whether it has them.
    Missing(Vec<Missing>),
    /// One dependency is only in batches that ended as invalid, and the ledger does not have it.
    Invalid(InvalidDependency),
    /// One dependency is in an invalid batch, and an operator has ended the batches that this one stops, up to a
    /// position.
    EndedWith {
        /// The invalid batch.
        blocker_seq: i64,
        /// The last position.
        until: i64,
    },
}

/// A transaction that a batch depends on and that is missing.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Missing {
    /// The transaction.
    pub(crate) transaction_id: ItemId,
    /// A batch with it that ended as invalid. The ledger may have it from another batch.
    pub(crate) invalid_seq: Option<i64>,
}

/// A transaction of an invalid batch on which another batch depends.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct InvalidDependency {
    /// The transaction.
    pub(crate) transaction_id: ItemId,
    /// The number of the invalid batch.
    pub(crate) seq: i64,
    /// Its id, unless retention has removed it.
    pub(crate) batch_id: Option<ItemId>,
}

impl InvalidDependency {
    /// Why a batch that depends on it is invalid.
    pub(crate) fn reason(&self) -> String {
        let Self { transaction_id, batch_id, .. } = self;
        let name = batch_id.map_or_else(String::new, |id| format!(" {id:.12}"));
        format!(
            "it depends on the transaction {transaction_id}, whose batch{name} is invalid, and the ledger \
             does not have the transaction"
        )
    }
}

/// A batch whose dependencies are evaluated.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Dependent<'a> {
    pub(crate) seq: i64,
    pub(crate) service_id: &'a ServiceId,
    /// `None`: it has no position yet.
    pub(crate) position: Option<i64>,
    pub(crate) dependencies: &'a [ItemId],
}

impl<'a> Dependent<'a> {
    /// A batch that already has its position.
    pub(super) fn positioned(batch: &'a PositionedBatch) -> Self {
        Self { position: Some(batch.position), ..Self::new(batch) }
    }

    /// A batch that gets its position if nothing is missing.
    pub(super) fn new(batch: &'a PositionedBatch) -> Self {
        let dependencies = batch.access.dependencies();
        Self { seq: batch.seq, service_id: &batch.service_id, position: None, dependencies }
    }
}

/// The dependency states of these batches, by the number of the batch. The ledger was asked about the transactions in
/// `absent` while the batches missed them, and does not have them.
pub(crate) fn find(
    connection: &mut Connection,
    batches: &[Dependent<'_>],
    absent: &[ItemId],
) -> Result<HashMap<i64, DependencyState>, StoreError> {
    let judge = Judge {
        holders: load_holders(connection, batches)?,
        known: load_known(connection, batches)?,
        absent,
        new: HashMap::new(),
    };
    let finding = |batch: &Dependent<'_>| Some((batch.seq, judge.all_of(batch)?));
    Ok(batches.iter().filter_map(finding).collect())
}

/// The dependency states of new batches of one commit, which may depend on each other. They are in the order of their
/// positions.
pub(super) fn find_of_new(
    connection: &mut Connection,
    batches: &[PositionedBatch],
) -> Result<HashMap<i64, DependencyState>, StoreError> {
    let dependents: Vec<Dependent<'_>> = batches.iter().map(Dependent::new).collect();
    if dependents.iter().all(|batch| batch.dependencies.is_empty()) {
        return Ok(HashMap::new());
    }
    let mut judge = Judge {
        holders: load_holders(connection, &dependents)?,
        known: HashMap::new(),
        absent: &[],
        new: batches.iter().map(|batch| (batch.seq, None)).collect(),
    };
    let mut findings = HashMap::new();
    for (batch, dependent) in batches.iter().zip(&dependents) {
        match judge.all_of(dependent) {
            Some(finding @ DependencyState::Missing(_)) => {
                findings.insert(batch.seq, finding);
            }
            finding => {
                judge.new.insert(batch.seq, Some(batch.position));
                findings.extend(finding.map(|finding| (batch.seq, finding)));
            }
        }
    }
    Ok(findings)
}

/// The knowledge with which batches are evaluated.
struct Judge<'a> {
    holders: Holders,
    known: HashMap<(i64, ItemId), Known>,
    /// Transactions that the ledger does not have.
    absent: &'a [ItemId],
    /// The positions of the batches that are being stored.
    new: HashMap<i64, Option<i64>>,
}

impl Judge<'_> {
    /// The dependency state of a batch.
    ///
    /// An invalid dependency ends the batch, whatever else is missing. As long as anything is missing, the batch does
    /// not wait for another batch.
    fn all_of(&self, batch: &Dependent<'_>) -> Option<DependencyState> {
        let mut missing = Vec::new();
        let mut waits = None;
        for id in batch.dependencies {
            match self.one(batch, *id) {
                Some(ended @ (DependencyState::Invalid(_) | DependencyState::EndedWith { .. })) => {
                    return Some(ended);
                }
                Some(DependencyState::Missing(ids)) => missing.extend(ids),
                Some(waiting) => waits = waits.or(Some(waiting)),
                None => {}
            }
        }
        if missing.is_empty() { waits } else { Some(DependencyState::Missing(missing)) }
    }

    fn one(&self, batch: &Dependent<'_>, transaction_id: ItemId) -> Option<DependencyState> {
        let known = self.known.get(&(batch.seq, transaction_id)).copied();
        let holders = self.holders.get(&transaction_id).map_or(&[][..], Vec::as_slice);
        let others: Vec<&Holder> = holders.iter().filter(|it| it.seq != batch.seq).collect();
        let is_committed = |holder: &&Holder| holder.state == HolderState::Committed;
        if known == Some(Known::Found) || others.iter().any(is_committed) {
            return None;
        }
        let invalid = latest_invalid(transaction_id, &others, known);
        let may_wait = |holder: &&&Holder| self.may_wait(batch, holder, invalid.is_some());
        if let Some(blocker) = others.iter().find(may_wait) {
            let service_id = blocker.service_id.clone();
            return Some(DependencyState::Waits { blocker_seq: blocker.seq, service_id });
        }
        if let Some(finding) = others.iter().find_map(|holder| batch.ended_with(holder)) {
            return Some(finding);
        }
        let is_open = others.iter().any(|holder| matches!(holder.state, HolderState::Open(_)));
        match invalid {
            // The batch missed nothing when it got its position.
            None if batch.position.is_some() => None,
            Some(invalid)
                if self.is_absent(transaction_id)
                    && known == Some(Known::Invalid(invalid.seq))
                    && !(is_open && batch.is_unpositioned()) =>
            {
                Some(DependencyState::Invalid(invalid))
            }
            invalid => {
                let invalid_seq = invalid.map(|invalid| invalid.seq);
                Some(DependencyState::Missing(vec![Missing { transaction_id, invalid_seq }]))
            }
        }
    }

    fn is_absent(&self, transaction_id: ItemId) -> bool {
        self.absent.contains(&transaction_id)
    }

    /// A batch waits only for batches that got their positions before it. Otherwise, two batches could wait for each
    /// other.
    ///
    /// If an invalid batch also contains the transaction, then the holder was stored again later and may itself wait
    /// for the batch that depends on it.
    fn may_wait(&self, batch: &Dependent<'_>, holder: &Holder, came_again: bool) -> bool {
        let position = match holder.state {
            HolderState::Halted => return true,
            HolderState::Open(position) => self.new.get(&holder.seq).copied().unwrap_or(position),
            _ => None,
        };
        let in_order = came_again || holder.service_id == *batch.service_id;
        position
            .is_some_and(|position| !in_order || batch.position.is_none_or(|own| position < own))
    }
}

/// The latest invalid batch with a transaction, even if it is no longer stored.
fn latest_invalid(
    transaction_id: ItemId,
    others: &[&Holder],
    known: Option<Known>,
) -> Option<InvalidDependency> {
    let invalid = others.iter().filter(|holder| holder.state.is_invalid());
    match (invalid.max_by_key(|holder| holder.seq), known) {
        (Some(Holder { seq, batch_id, .. }), _) => {
            Some(InvalidDependency { transaction_id, seq: *seq, batch_id: Some(*batch_id) })
        }
        (None, Some(Known::Invalid(seq))) => {
            Some(InvalidDependency { transaction_id, seq, batch_id: None })
        }
        (None, _) => None,
    }
}

impl Dependent<'_> {
    fn is_unpositioned(&self) -> bool {
        self.position.is_none()
    }

    /// Whether it ends because an operator has ended the batches that an invalid batch of its service stops.
    fn ended_with(&self, holder: &Holder) -> Option<DependencyState> {
        let HolderState::EndsFollowing(until) = holder.state else { return None };
        let follows = holder.service_id == *self.service_id
            && self.position.is_some_and(|position| position <= until);
        follows.then_some(DependencyState::EndedWith { blocker_seq: holder.seq, until })
    }
}

/// For each transaction that batches depend on, the batches that contain it.
type Holders = HashMap<ItemId, Vec<Holder>>;

/// A batch with a transaction that others depend on.
#[derive(Debug)]
struct Holder {
    seq: i64,
    batch_id: ItemId,
    service_id: ServiceId,
    state: HolderState,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum HolderState {
    Committed,
    Invalid,
    /// It ended as invalid, and the batches that it stops wait for an operator.
    Halted,
    /// It ended as invalid, and the batches that it stops end, up to this position.
    EndsFollowing(i64),
    /// It is open; with its position, if it has one.
    Open(Option<i64>),
}

impl HolderState {
    /// Whether it ended as invalid and no operator's decision is awaited.
    const fn is_invalid(self) -> bool {
        matches!(self, Self::Invalid | Self::EndsFollowing(_))
    }
}

fn load_holders(
    connection: &mut Connection,
    batches: &[Dependent<'_>],
) -> Result<Holders, StoreError> {
    let ids: Vec<ItemId> = batches.iter().flat_map(|batch| batch.dependencies).copied().collect();
    if ids.is_empty() {
        return Ok(Holders::default());
    }
    let same = same_transaction("x");
    let rows: Vec<HolderRow> = connection.load_rows(
        format!(
            "-- find_dependencies
             select x.number, b.seq, b.batch_id, b.service_id, b.dlt_status,
                 coalesce(
                     (select w.position from waiting_batches w where w.batch_seq = b.seq),
                     (select s.position from lanes s
                      where s.service_id = b.service_id and s.batch_seq = b.seq)) as position,
                 (select count(*) from halts h where h.batch_seq = b.seq) > 0 as halted,
                 (select h.ends_until from halts h where h.batch_seq = b.seq) as ends_until
             from {{x}} join transactions t on {same} join batches b on b.seq = t.batch_seq"
        ),
        Rows::default()
            .long("number", (0..ids.len()).map(number_of))
            .bytes("transaction_id", ids.iter().map(|id| id.as_bytes())),
    )?;
    let mut holders = Holders::default();
    for row in rows {
        let id = usize::try_from(row.number).ok().and_then(|number| ids.get(number));
        let id = id.ok_or_else(|| StoreError::corrupt("a transaction that was not asked for"))?;
        holders.entry(*id).or_default().push(row.read()?);
    }
    Ok(holders)
}

/// What is already known about a dependency of a batch.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Known {
    /// The ledger was found to have it, or an operator accepts that it is missing.
    Found,
    /// This batch contains it and ended as invalid; retention may have removed the batch since.
    Invalid(i64),
}

/// What is already known about the dependencies of these batches, by the number of the batch and the transaction.
fn load_known(
    connection: &mut Connection,
    batches: &[Dependent<'_>],
) -> Result<HashMap<(i64, ItemId), Known>, StoreError> {
    let with_any = || batches.iter().filter(|batch| !batch.dependencies.is_empty());
    if with_any().next().is_none() {
        return Ok(HashMap::new());
    }
    let rows: Vec<KnownRow> = connection.load_rows(
        "-- find_known_transactions
         select m.batch_seq, m.transaction_id, m.found_at is not null as found, m.invalid_seq
         from {x} join missing_transactions m on m.batch_seq = x.batch_seq
         where m.found_at is not null or m.invalid_seq is not null",
        Rows::default().long("batch_seq", with_any().map(|batch| batch.seq)),
    )?;
    rows.iter()
        .map(|row| Ok(((row.batch_seq, batch_id(&row.transaction_id)?), row.read()?)))
        .collect()
}

result_row! {
    struct HolderRow {
        number: i64,
        seq: i64,
        batch_id: Vec<u8>,
        service_id: String,
        dlt_status: Option<String>,
        position: Option<i64>,
        halted: bool,
        ends_until: Option<i64>,
    }
}

impl HolderRow {
    fn read(self) -> Result<Holder, StoreError> {
        let status: Option<DltStatus> =
            self.dlt_status.as_deref().map(str::parse).transpose().map_err(StoreError::corrupt)?;
        Ok(Holder {
            seq: self.seq,
            batch_id: batch_id(&self.batch_id)?,
            service_id: service_id(&self.service_id)?,
            state: match (status, self.ends_until) {
                (None, _) => HolderState::Open(self.position),
                (Some(DltStatus::Committed), _) => HolderState::Committed,
                (Some(_), Some(until)) => HolderState::EndsFollowing(until),
                (Some(_), None) if self.halted => HolderState::Halted,
                (Some(_), None) => HolderState::Invalid,
            },
        })
    }
}

result_row! {
    struct KnownRow {
        batch_seq: i64,
        transaction_id: Vec<u8>,
        found: bool,
        invalid_seq: Option<i64>,
    }
}

impl KnownRow {
    fn read(&self) -> Result<Known, StoreError> {
        match (self.found, self.invalid_seq) {
            (true, _) => Ok(Known::Found),
            (false, Some(seq)) => Ok(Known::Invalid(seq)),
            (false, None) => Err(StoreError::corrupt("a missing transaction nothing is known of")),
        }
    }
}
