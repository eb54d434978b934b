use grid_batch_core::Hold;
use grid_batch_withdrawals::WithdrawalDetails;

use crate::{http::rfc3339, withdrawals::withdrawal_state::WithdrawalState};

/// What a withdrawal waits for, as a text for people. `None` if it has ended.
pub(crate) fn waits_for(details: &WithdrawalDetails) -> Option<String> {
    let note = details.nonce.as_ref().and_then(|nonce| nonce.note.as_deref());
    // Without a nonce, the last attempt says why none was assigned.
    let note =
        note.or_else(|| details.batch.last_error.as_deref().filter(|_| details.nonce.is_none()));
    let waits_for = match WithdrawalState::of(details) {
        WithdrawalState::Withdrawn | WithdrawalState::Failed => return None,
        WithdrawalState::Held => hold_reason(details, note),
        WithdrawalState::Scheduled => queue_position(details.ahead),
        WithdrawalState::Parked => next_try(details),
        WithdrawalState::Submitting => "the node's answer to its transaction".to_owned(),
        WithdrawalState::InDoubt => {
            note.unwrap_or("evidence of whether its transaction was sent").to_owned()
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

fn hold_reason(details: &WithdrawalDetails, note: Option<&str>) -> String {
    let Some(Hold { reason, .. }) = &details.batch.held else { return String::new() };
    match note {
        Some(note) => format!("{reason} ({note})"),
        None => reason.clone(),
    }
}

fn queue_position(ahead: Option<u64>) -> String {
    match ahead {
        None => "earlier withdrawals of its gas admin".to_owned(),
        Some(0) => "its submission, as the next of its gas admin".to_owned(),
        Some(1) => "1 earlier withdrawal of its gas admin".to_owned(),
        Some(ahead) => format!("{ahead} earlier withdrawals of its gas admin"),
    }
}

fn next_try(details: &WithdrawalDetails) -> String {
    let reason = details.batch.last_error.as_deref().unwrap_or("its next try");
    match details.batch.next_try_at {
        Some(time) => format!("{reason}; next try at {}", rfc3339(time)),
        None => reason.to_owned(),
    }
}
