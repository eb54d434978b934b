use grid_batch_withdrawals::{WithdrawalDetails, WithdrawalState};

/// What clients and operators can do about a withdrawal or transaction: the last part of a path below its own.
pub(crate) struct QueuedVerb {
    pub(crate) name: &'static str,
    /// What it does, as a continuation of its name.
    pub(crate) text: &'static str,
    is_possible: fn(&WithdrawalDetails) -> bool,
}

const VERBS: [QueuedVerb; 3] = [
    QueuedVerb {
        name: "cancel",
        text: "it fails, unless the chain executes it first",
        is_possible: |details| {
            !details.batch.progress.state.is_terminal() && details.cancelled_at.is_none()
        },
    },
    QueuedVerb {
        name: "speed-up",
        text: "raise its fees by an eighth or more, unless that exceeds the maximum",
        is_possible: |details| details.withdrawal.call.is_some() && details.waits_to_be_mined(),
    },
    QueuedVerb {
        name: "retry",
        text: "schedule it again, behind those that wait",
        is_possible: |details| WithdrawalState::of(details) == WithdrawalState::Failed,
    },
];

/// The verbs that its state allows.
pub(crate) fn possible_verbs(
    details: &WithdrawalDetails,
) -> impl Iterator<Item = &'static QueuedVerb> {
    VERBS.iter().filter(|verb| (verb.is_possible)(details))
}
