use std::time::Duration;

use crate::batches::{BatchState, Deadline};
use crate::ledger::AttemptId;
use crate::{BatchResult, ItemId, ServiceId, Timestamp};

/// What is proved about a batch.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Evidence {
    /// The ledger has applied it.
    Committed,
    /// The ledger has it and has not applied it yet.
    Present,
    /// The ledger does not have it, and no earlier attempt can still reach the ledger.
    Absent,
    /// The ledger has not applied it and would apply it only once, however often it is sent, because it is a
    /// transaction whose nonce can be used only once. It may be sent again.
    Repeatable,
    /// The ledger accepted the present attempt and has lost it, for example because a node restarted. The attempt
    /// cannot reach the ledger later.
    Lost,
    /// A node stopped answering while it had the batch, and the ledger no longer has it.
    /// Sending it again may stop the node again.
    StoppedNode,
    /// The ledger has not applied it and can never apply it, whatever attempt arrives: a transaction of it was applied
    /// with another batch. As with absence and expiry, this is used only after the nodes have confirmed their ledger
    /// again.
    NeverApplicable,
    /// The ledger has not applied it, and its [deadline](crate::batches::Deadline) has passed there: it can never apply it,
    /// whatever attempt arrives.
    Expired,
    /// Nothing is proved.
    Inconclusive,
}

impl Evidence {
    /// Whether the ledger does not have the batch.
    pub const fn is_absence(self) -> bool {
        matches!(self, Self::Absent | Self::Lost | Self::StoppedNode)
    }
}

/// What a search for evidence found.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct EvidenceReport {
    /// What is proved.
    pub evidence: Evidence,
    /// What was seen, for an operator: why nothing is proved, or why a batch is not sent again.
    pub detail: Option<String>,
    /// The time after which to search again at the latest, because evidence may exist then.
    pub again_in: Option<Duration>,
    /// The time after which absence will be proved if nothing changes. Until then the batch is neither held nor
    /// submitted again.
    pub provable_in: Option<Duration>,
}

impl EvidenceReport {
    /// Evidence with a detail for an operator.
    pub fn with_detail(evidence: Evidence, detail: impl Into<String>) -> Self {
        Self { detail: Some(detail.into()), ..evidence.into() }
    }
}

impl From<Evidence> for EvidenceReport {
    fn from(evidence: Evidence) -> Self {
        Self { evidence, detail: None, again_in: None, provable_in: None }
    }
}

/// A batch for which evidence is searched, because its reported status does not end it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct UnresolvedBatch {
    /// The service that orders it.
    pub service_id: ServiceId,
    /// Its id.
    pub batch_id: ItemId,
    /// The ids of its transactions, in order.
    pub transaction_ids: Vec<ItemId>,
    /// Those of its transactions that another stored batch of the service contains as well. If such a transaction was
    /// applied, it is not known which of the batches was committed.
    pub shared_transaction_ids: Vec<ItemId>,
    /// The present attempt; 0 for a batch of a restored database that was never tried.
    pub attempt_id: AttemptId,
    /// How many of its attempts the ledger certainly did not accept. They do not show what the ledger does with the
    /// batch.
    pub not_accepted: u32,
    /// Its state.
    pub state: BatchState,
    /// When it was handed to a submitter.
    pub submitted_at: Timestamp,
    /// When it entered its state.
    pub since: Timestamp,
    /// Whether it is held for an operator already.
    pub held: bool,
    /// Whether the hold ends only with an operator's decision or a final status of the ledger.
    pub held_until_decision: bool,
    /// The error of the last attempt.
    pub last_error: Option<String>,
    /// Whether an earlier attempt may still arrive, as in [`Progress`](crate::batches::Progress).
    pub earlier_may_arrive: bool,
    /// Whether the present attempt was reported as invalid, as in [`Progress`](crate::batches::Progress).
    pub invalid_reported: bool,
    /// Whether it may have been sent in a list, before or behind a batch that conflicts with it and has not ended.
    pub in_list: bool,
    /// When its ledger can no longer apply it.
    pub deadline: Option<Deadline>,
}

impl UnresolvedBatch {
    /// A batch about which nothing else is known: without transactions or an error, not held, and with
    /// times of zero.
    pub fn new(
        service_id: ServiceId,
        batch_id: ItemId,
        attempt_id: AttemptId,
        state: BatchState,
    ) -> Self {
        Self {
            service_id,
            batch_id,
            transaction_ids: Vec::new(),
            shared_transaction_ids: Vec::new(),
            attempt_id,
            not_accepted: 0,
            state,
            submitted_at: Timestamp::default(),
            since: Timestamp::default(),
            held: false,
            held_until_decision: false,
            last_error: None,
            earlier_may_arrive: false,
            invalid_reported: false,
            in_list: false,
            deadline: None,
        }
    }
}

/// How the search for evidence about a batch ends.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Resolution {
    /// Apply this evidence.
    Evidence(Evidence),
    /// The batch is invalid for this reason: the evidence says that the ledger can never apply it.
    Invalid(Evidence, String),
    /// No earlier attempt can arrive at the ledger any more.
    EarlierCannotArrive,
    /// Hold the batch, for this reason, until an operator decides or the ledger reports a status
    /// that ends it, or evidence is found.
    Hold(String),
    /// Hold the batch, for this reason, until an operator decides or the ledger reports a status
    /// that ends it. Absence does not send it again.
    HoldUntilDecision(String),
}

/// Reads the batches for which more than the status is requested from a ledger, and stores the results.
#[cfg_attr(feature = "mocks", mockall::automock)]
pub trait LedgerQuestionStore: Send {
    /// Those of these batches that are still unresolved, so that evidence is searched.
    fn get_unresolved_batches(
        &self,
        service_id: &str,
        batch_ids: &[String],
    ) -> BatchResult<Vec<UnresolvedBatch>>;

    /// Stores the resolutions in one commit.
    fn resolve(&self, resolutions: &[(UnresolvedBatch, Resolution)]) -> BatchResult<()>;

    /// The batches of these services that are sent next, after the present ones. For each service, at most as many as
    /// fit into one request to a ledger. The default implementation returns none, so the ledger is not asked ahead.
    fn next_batches(&self, _services: &[ServiceId]) -> BatchResult<Vec<(ServiceId, ItemId)>> {
        Ok(Vec::new())
    }
}
