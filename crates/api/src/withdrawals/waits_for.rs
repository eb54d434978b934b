use grid_batch_core::batches::Hold;
use grid_batch_withdrawals::{AheadCount, AssignedNonce, WithdrawalDetails, WithdrawalState};

use crate::withdrawals::Queued;

/// What a withdrawal or transaction waits for, as a text for people. `None` if it has ended.
pub(crate) fn waits_for(details: &WithdrawalDetails) -> Option<String> {
    let nonce = present_nonce(details);
    let note = nonce.and_then(|nonce| nonce.note.as_deref());
    // Without a nonce, the last attempt says why none was assigned.
    let without_nonce = details.batch.last_error.as_deref().filter(|_| nonce.is_none());
    let waits_for = match WithdrawalState::of(details) {
        WithdrawalState::Withdrawn | WithdrawalState::Failed => return None,
        WithdrawalState::Held if details.batch.progress.state.is_terminal() => {
            decision(details, nonce)
        }
        WithdrawalState::Held => hold_reason(details, note.or(without_nonce)),
        WithdrawalState::Scheduled => queue_position(details),
        WithdrawalState::Parked => next_try(details),
        WithdrawalState::Submitting => "the node's answer to its transaction".to_owned(),
        WithdrawalState::InDoubt => {
            let reason = note.or(without_nonce);
            reason.unwrap_or("evidence of whether its transaction was sent").to_owned()
        }
        WithdrawalState::Pending | WithdrawalState::Mined if details.is_signed_ahead() => {
            signed_ahead(details, note)
        }
        WithdrawalState::Pending => note.unwrap_or("its transaction to be mined").to_owned(),
        WithdrawalState::Mined => {
            note.unwrap_or("the block of its transaction to be final").to_owned()
        }
    };
    match details.cancelled_at {
        Some(_) => Some(format!("cancellation, if it is still possible; {waits_for}")),
        None => Some(waits_for),
    }
}

/// The nonce that the withdrawal has. One whose use ended in an earlier generation says nothing about the
/// present.
pub(crate) fn present_nonce(details: &WithdrawalDetails) -> Option<&AssignedNonce> {
    let is_present =
        |nonce: &&AssignedNonce| nonce.outcome.is_none() || nonce.generation == details.generation;
    details.nonce.as_ref().filter(is_present)
}

/// Its result is reported after those of the earlier ones.
fn signed_ahead(details: &WithdrawalDetails, note: Option<&str>) -> String {
    let queue = queue_position(details);
    match (note, node_error(details)) {
        (Some(note), _) => format!("{note}; it waits for {queue}"),
        (None, None) => format!("its transaction is sent; it waits for {queue}"),
        (None, Some(error)) => {
            format!("its transaction was last sent with an error: {error}; it waits for {queue}")
        }
    }
}

/// The node's error when the transaction that is to be mined was last sent.
fn node_error(details: &WithdrawalDetails) -> Option<&str> {
    details.nonce.as_ref()?.best()?.last_error.as_deref()
}

fn hold_reason(details: &WithdrawalDetails, note: Option<&str>) -> String {
    let Some(Hold { reason, .. }) = &details.batch.held else { return String::new() };
    match note {
        Some(note) if !reason.contains(note) => format!("{reason} ({note})"),
        None if details.is_signed_ahead() => {
            format!(
                "{reason} (its transaction was already sent; cancel it to keep it from being mined)"
            )
        }
        _ => reason.clone(),
    }
}

/// What an operator does about a withdrawal whose batch has ended and of which it is not known whether it was made.
fn decision(details: &WithdrawalDetails, nonce: Option<&AssignedNonce>) -> String {
    let Some(AssignedNonce { nonce, note, .. }) = nonce else { return String::new() };
    let (id, service) = (details.withdrawal.id, &details.withdrawal.service_id);
    let note = note.as_deref().unwrap_or("its transaction is final");
    format!(
        "{note}; look at the chain, then run `grid-batch nonce {service} {nonce} {id} --reason TEXT` if it was made, \
         or `grid-batch nonce {service} {nonce} elsewhere --reason TEXT` if it was not"
    )
}

fn queue_position(details: &WithdrawalDetails) -> String {
    let kind = Queued::of(&details.withdrawal);
    let owner = kind.owner();
    let Some(AheadCount { count, more }) = details.ahead else {
        return format!("earlier {kind}s of its {owner}");
    };
    let more = if more { "more than " } else { "" };
    match count {
        0 => format!("its submission, as the next of its {owner}"),
        1 => format!("1 earlier {kind} of its {owner}"),
        count => format!("{more}{count} earlier {kind}s of its {owner}"),
    }
}

fn next_try(details: &WithdrawalDetails) -> String {
    let reason = details.batch.last_error.as_deref().unwrap_or("its next try");
    match details.batch.next_try_at {
        Some(time) => format!("{reason}; next try at {}", time.rfc3339_micros()),
        None => reason.to_owned(),
    }
}
