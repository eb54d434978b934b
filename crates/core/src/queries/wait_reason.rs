//! Every reason why a batch does not move: its name, its meaning and what ends it.

use crate::batches::{AddressPrefix, Deadline};
use crate::claims::InstanceId;
use crate::ledger::Outage;
use crate::operators::OperatorVerb;
use crate::queue::WaitKind;
use crate::{ItemId, Timestamp};

/// Why a batch does not move. `docs/waits.md` has a row for each.
///
/// The reasons up to [`NodePlace`](Self::NodePlace) are about a batch that is neither next nor under
/// way, those from [`Lease`](Self::Lease) on keep all batches of a service, and the others are about a batch that
/// is next or under way.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum WaitReason {
    /// Its turn: the batches of its service are submitted in order.
    Behind,
    /// An earlier batch of its service that it conflicts with.
    Conflict {
        /// An address that both declare and at least one of them writes; `None`: it was not determined.
        address: Option<AddressPrefix>,
    },
    /// A batch with a transaction that it depends on, also of another service.
    Dependency {
        /// The transaction.
        transaction_id: ItemId,
    },
    /// A transaction that it depends on and that is in no batch that can be submitted.
    MissingTransaction {
        /// The transaction.
        transaction_id: ItemId,
        /// Since when it is missing.
        since: Timestamp,
        /// Whether a batch with this transaction ended as invalid. The waiting batch then ends as well, unless the
        /// ledger has the transaction.
        invalid: bool,
    },
    /// An operator, because an invalid batch stops it.
    Halt {
        /// Since when.
        since: Timestamp,
    },
    /// The end of a pause: no new submission of its service is started.
    Paused {
        /// Since when.
        since: Timestamp,
        /// Since when, by whom and why, as a sentence without a full stop, if it was read.
        pause: Option<String>,
    },
    /// A lane: as many batches of its service are under way as are allowed.
    Lane,
    /// A place in the in-flight window. The batch is in a lane and could otherwise be sent.
    InFlightWindow,
    /// A place at its node. The batch is next and could otherwise be sent.
    NodePlace,
    /// It is held for an operator.
    Held,
    /// A gate, such as that of the gas price, keeps it back.
    Parked,
    /// Its last attempt failed, and it is tried again later.
    Delayed,
    /// It is the next one of its service and is not with a submitter yet.
    Submission,
    /// It is being sent.
    Submitter,
    /// It is not known whether the ledger has it.
    Evidence,
    /// It is invalid, which is not final while an earlier attempt may still arrive.
    LateArrival,
    /// A node has accepted it, and the ledger has not ended it.
    Status,
    /// The ledger did not report it when it was last asked.
    Unconfirmed {
        /// The batch.
        batch_id: ItemId,
        /// When the ledger first did not report it.
        since: Timestamp,
    },
    /// No live instance works on its service.
    Lease {
        /// The instance that claims the service and has not renewed its lease, and when the lease ended; `None`:
        /// no instance claims it.
        expired: Option<(InstanceId, Timestamp)>,
    },
    /// A node of its ledger does not answer, or does not report which ledger it belongs to.
    Node(Outage),
    /// The ledger is busy: it refuses batches for now, such as with the HTTP status 429.
    Busy {
        /// When an attempt of the service was first not accepted, since the last one that was.
        since: Timestamp,
        /// How many attempts in a row were not accepted.
        attempts: u64,
    },
    /// Rows of its service that another transaction keeps locked.
    Lock {
        /// When this process first could not lock them.
        since: Timestamp,
    },
    /// The end of the time in which its ledger can apply it.
    Deadline(Deadline),
}

/// What all waits for the same reason have in common.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct AboutWait {
    /// The name, as interfaces write it.
    pub name: &'static str,
    /// What it says about a batch, as a continuation of "the batch".
    pub meaning: &'static str,
    /// What ends the wait: an event, a time or an operator's action.
    pub ends: &'static str,
    /// What an operator may do about the batch or its service, where its state allows it.
    pub actions: &'static [OperatorVerb],
}

const DECISIONS: &[OperatorVerb] =
    &[OperatorVerb::Resubmit, OperatorVerb::EndCommitted, OperatorVerb::EndInvalid];

impl WaitReason {
    /// The name, as interfaces write it.
    pub fn name(&self) -> &'static str {
        self.about().name
    }

    /// What is known about the reason, independent of the batch.
    pub fn about(&self) -> AboutWait {
        let (name, meaning, ends) = self.words();
        AboutWait { name, meaning, ends, actions: self.actions() }
    }

    /// The name, the meaning, and what ends it.
    const fn words(&self) -> (&'static str, &'static str, &'static str) {
        match self {
            Self::Behind => {
                ("behind", "waits behind others of its service", "the end of the batches before it")
            }
            Self::Conflict { .. } => (
                "conflict",
                "conflicts with an earlier batch of its service, at `waits_for.address`",
                "the end of that batch",
            ),
            Self::Dependency { .. } => (
                "dependency",
                "depends on a transaction of another batch",
                "the commit of that batch; if it is invalid, an answer of the ledger about the transaction",
            ),
            Self::MissingTransaction { .. } => (
                "missing_transaction",
                "depends on a transaction that is in no batch that can be submitted",
                "a batch with the transaction, or an answer of the ledger, which is asked whether it has it",
            ),
            Self::Halt { .. } => {
                ("halt", "is stopped by an invalid batch", "an operator's decision")
            }
            Self::Paused { .. } => (
                "paused",
                "was never sent, and its service is paused, or all services are",
                "a `resume` by an operator; if the states of the nodes differ, their agreement",
            ),
            Self::Lane => (
                "lane",
                "waits because as many batches of its service are under way as may be",
                "the end of another batch of its service",
            ),
            Self::InFlightWindow => (
                "in_flight_window",
                "could be submitted, but the ledger has as many batches as it takes at present (only its owner knows)",
                "the end of batches of any service, or a larger window",
            ),
            Self::NodePlace => (
                "node_place",
                "could be submitted, but its node has as many submissions as it may have (only its owner knows)",
                "the end of a submission at that node",
            ),
            Self::Held => (
                "held",
                "is held for an operator",
                "an operator's decision, a final status of the ledger, or, unless `until_decision`, evidence",
            ),
            Self::Parked => (
                "parked",
                "is kept back by a gate, such as that of the gas price or of a pool; `last_error` says which",
                "the opening of the gate, which is looked at again at `next_try_at`",
            ),
            Self::Delayed => (
                "delayed",
                "could not be sent; `last_error` says why",
                "the next try, at `next_try_at`",
            ),
            Self::Submission => (
                "submission",
                "is next and is sent soon",
                "its submission by the owner of its service",
            ),
            Self::Submitter => {
                ("submitter", "is being sent", "an answer, or the time limit of the submission")
            }
            Self::Evidence => (
                "evidence",
                "may or may not have reached the ledger",
                "a status or evidence of the ledger; without any, it is held",
            ),
            Self::LateArrival => (
                "late_arrival",
                "is reported as invalid, which is final only when no earlier attempt can reach the ledger",
                "the time after which no earlier attempt can reach the ledger",
            ),
            Self::Status => (
                "status",
                "was accepted by a node, and the ledger has not ended it",
                "a final status of the ledger; if it does not report or end the batch, evidence or a hold",
            ),
            Self::Unconfirmed { .. } => (
                "unconfirmed",
                "was not reported by the ledger when it was last asked (only its owner knows)",
                "a status or evidence of the ledger, which is asked for both; without any, it is held",
            ),
            Self::Lease { .. } => (
                "lease",
                "is of a service that no instance claims, or whose instance does not renew its lease",
                "an instance that claims the service, or renews its lease",
            ),
            Self::Node(_) => (
                "node",
                "depends on a node that does not answer, or does not report which ledger it belongs to",
                "an answer of the node, or of another node that has the ledger's state",
            ),
            Self::Busy { .. } => (
                "busy",
                "is of a service whose attempts the ledger refuses because it is busy (only its owner knows)",
                "the first attempt that is accepted, after the delays of the batches",
            ),
            Self::Lock { .. } => (
                "lock",
                "belongs to a service with a row that another transaction of the database keeps locked",
                "the end of that transaction",
            ),
            Self::Deadline(_) => (
                "deadline",
                "cannot be applied by its ledger after a time or a height",
                "the deadline: then it is not sent any more, and ends when it is proved absent",
            ),
        }
    }

    /// What an operator may do.
    const fn actions(&self) -> &'static [OperatorVerb] {
        match self {
            Self::Behind
            | Self::Conflict { .. }
            | Self::Dependency { .. }
            | Self::MissingTransaction { .. }
            | Self::Lane
            | Self::InFlightWindow
            | Self::NodePlace
            | Self::Submission => &[OperatorVerb::Cancel],
            Self::Halt { .. } => {
                &[OperatorVerb::Cancel, OperatorVerb::Continue, OperatorVerb::EndFollowing]
            }
            Self::Paused { .. } => &[OperatorVerb::Cancel, OperatorVerb::Resume],
            Self::Held => &[
                OperatorVerb::Release,
                OperatorVerb::Cancel,
                OperatorVerb::Resubmit,
                OperatorVerb::EndCommitted,
                OperatorVerb::EndInvalid,
            ],
            Self::Parked | Self::Delayed => &[OperatorVerb::Retry, OperatorVerb::Cancel],
            Self::Evidence | Self::LateArrival | Self::Status => DECISIONS,
            Self::Submitter
            | Self::Unconfirmed { .. }
            | Self::Lease { .. }
            | Self::Node(_)
            | Self::Busy { .. }
            | Self::Lock { .. }
            | Self::Deadline(_) => &[],
        }
    }

    /// A sentence, without a full stop, about a cause that keeps all batches of the service, or that is known besides
    /// what a batch waits for. `None` if the reason is what a batch waits for.
    pub fn sentence(&self) -> Option<String> {
        Some(match self {
            Self::Lease { expired: None } => {
                "No server works on its service: no running instance has claimed it".to_owned()
            }
            Self::Lease { expired: Some((instance_id, _)) } => format!(
                "The instance {instance_id}, which works on its service, has not renewed its lease in time; if it \
                 does not come back, another one takes over"
            ),
            Self::Paused { pause: Some(pause), .. } => pause.clone(),
            Self::Node(outage) => format!("The node {outage}"),
            Self::Busy { attempts: 1, .. } => {
                "The ledger is busy: it has not accepted the last attempt of its service".to_owned()
            }
            Self::Busy { attempts, .. } => format!(
                "The ledger is busy: it has not accepted the last {attempts} attempts of its service"
            ),
            Self::Unconfirmed { batch_id, .. } => format!(
                "The ledger did not report the batch {batch_id:.12} when it was last asked; the server asks it for evidence"
            ),
            Self::Lock { .. } => {
                "Another transaction of the database keeps rows of its service locked".to_owned()
            }
            Self::Deadline(deadline) => format!("Its ledger cannot apply it after {deadline:#}"),
            _ => return None,
        })
    }

    /// Since when it applies, if the reason says so.
    pub fn since(&self) -> Option<Timestamp> {
        match self {
            Self::MissingTransaction { since, .. }
            | Self::Halt { since }
            | Self::Paused { since, .. }
            | Self::Unconfirmed { since, .. }
            | Self::Busy { since, .. }
            | Self::Lock { since } => Some(*since),
            Self::Node(outage) => Some(outage.since),
            Self::Lease { expired } => expired.as_ref().map(|(_, ended_at)| *ended_at),
            _ => None,
        }
    }

    /// The batch that it is about, if the reason names one that is not waited for.
    pub const fn batch_id(&self) -> Option<&ItemId> {
        match self {
            Self::Unconfirmed { batch_id, .. } => Some(batch_id),
            _ => None,
        }
    }

    /// Whether it is a place that a batch needs to be sent, and nothing else keeps the batch back.
    pub const fn is_place(&self) -> bool {
        matches!(self, Self::InFlightWindow | Self::NodePlace)
    }

    /// Whether a batch that is held waits for the end of its hold first: a missing transaction may never
    /// arrive, and a held batch asks for no place.
    pub(crate) const fn is_after_a_hold(&self) -> bool {
        matches!(self, Self::MissingTransaction { .. }) || self.is_place()
    }
}

impl WaitKind {
    /// The name of its reason, as interfaces write it.
    pub const fn cause(self) -> &'static str {
        match self {
            Self::Halt => "halt",
            Self::Missing => "missing_transaction",
            Self::Dependency => "dependency",
            Self::Earlier => "behind",
            Self::Conflict => "conflict",
            Self::Lane => "lane",
        }
    }
}

/// One of each reason, for tests that compare it with what is written elsewhere.
#[cfg(any(test, feature = "mocks"))]
impl WaitReason {
    /// One of each reason.
    pub fn examples() -> Vec<Self> {
        let (since, transaction_id) = (Timestamp::from_micros(1), ItemId::from_bytes([7; 64]));
        vec![
            Self::Held,
            Self::Halt { since },
            Self::Paused { since, pause: None },
            Self::Parked,
            Self::Delayed,
            Self::Behind,
            Self::Conflict { address: None },
            Self::Dependency { transaction_id },
            Self::MissingTransaction { transaction_id, since, invalid: false },
            Self::Lane,
            Self::InFlightWindow,
            Self::NodePlace,
            Self::Submission,
            Self::Submitter,
            Self::Status,
            Self::Unconfirmed { batch_id: transaction_id, since },
            Self::Evidence,
            Self::LateArrival,
            Self::Lease { expired: None },
            Self::Node(Outage {
                node: "http://node:8080".to_owned(),
                kind: crate::ledger::OutageKind::Unanswered,
                since,
                lasted: std::time::Duration::from_secs(1),
                reason: "refused".to_owned(),
            }),
            Self::Busy { since, attempts: 2 },
            Self::Lock { since },
            Self::Deadline(Deadline::Height(1)),
        ]
    }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use super::*;

    #[test]
    fn causes_of_kinds_are_names_of_reasons() {
        let names: BTreeSet<_> = WaitReason::examples().iter().map(WaitReason::name).collect();
        let kinds = [
            WaitKind::Halt,
            WaitKind::Missing,
            WaitKind::Dependency,
            WaitKind::Earlier,
            WaitKind::Conflict,
            WaitKind::Lane,
        ];
        assert!(kinds.iter().all(|kind| names.contains(kind.cause())), "{names:?}");
    }

    #[test]
    fn reasons_have_distinct_names() {
        let examples = WaitReason::examples();
        let names: BTreeSet<_> = examples.iter().map(WaitReason::name).collect();
        assert_eq!(names.len(), examples.len());
    }
}
