use grid_batch_core::Hold;
use grid_batch_withdrawals::WithdrawalDetails;

use crate::{time::rfc3339, withdrawals::standing::Standing};

/// What a withdrawal waits for, for people; nothing, where it has ended.
pub(crate) fn waits_for(story: &WithdrawalDetails) -> Option<String> {
    let seen = story.nonce.as_ref().and_then(|nonce| nonce.note.as_deref());
    let waits_for = match Standing::of(story) {
        Standing::Withdrawn | Standing::Failed => return None,
        Standing::Held => for_a_person(story, seen),
        Standing::Scheduled => for_its_turn(story.ahead),
        Standing::Parked => for_a_gate(story),
        Standing::Submitting => "to be sent, and to be answered".to_owned(),
        Standing::InDoubt => seen.unwrap_or("to learn whether it was sent").to_owned(),
        Standing::Pending => seen.unwrap_or("to be mined").to_owned(),
        Standing::Mined => seen.unwrap_or("to be final").to_owned(),
    };
    match story.cancelled_at {
        Some(_) => Some(format!("to be cancelled, where that can still be; {waits_for}")),
        None => Some(waits_for),
    }
}

fn for_a_person(story: &WithdrawalDetails, seen: Option<&str>) -> String {
    let Some(Hold { reason, .. }) = &story.batch.held else { return String::new() };
    match seen {
        Some(seen) => format!("{reason} ({seen})"),
        None => reason.clone(),
    }
}

fn for_its_turn(ahead: Option<u64>) -> String {
    match ahead {
        None => "those of its gas admin that come before it".to_owned(),
        Some(0) => "its turn".to_owned(),
        Some(1) => "1 withdrawal of its gas admin comes before it".to_owned(),
        Some(ahead) => format!("{ahead} withdrawals of its gas admin come before it"),
    }
}

fn for_a_gate(story: &WithdrawalDetails) -> String {
    let reason = story.batch.last_error.as_deref().unwrap_or("to be tried again");
    match story.batch.next_try_at {
        Some(time) => format!("{reason}; it is looked at again at {}", rfc3339(time)),
        None => reason.to_owned(),
    }
}
