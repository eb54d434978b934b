use bytes::{BufMut, Bytes, BytesMut};
use hyper::StatusCode;

use crate::{Fault, common_state::CommonState, response::SimResponse};

const STATUS_FAULTS: [Fault; 6] = [
    Fault::StatusesBroken,
    Fault::StatusesTruncated,
    Fault::StatusesNotJson,
    Fault::StatusesWrongTyped,
    Fault::StatusesHuge,
    Fault::StatusesOfOthers,
];

/// Corrupts a response with statuses if a fault occurs.
pub(crate) fn corrupt_statuses(
    response: SimResponse,
    wrong_typed: &'static str,
    common: &mut CommonState,
) -> SimResponse {
    if response.status != StatusCode::OK {
        return response;
    }
    match STATUS_FAULTS.into_iter().find(|kind| common.faults.occurs(*kind)) {
        Some(kind) => corrupt(kind, response, wrong_typed),
        None => response,
    }
}

fn corrupt(kind: Fault, mut response: SimResponse, wrong_typed: &'static str) -> SimResponse {
    match kind {
        Fault::StatusesBroken => response.breaks = true,
        Fault::StatusesTruncated => response.body.truncate(response.body.len() / 2),
        Fault::StatusesNotJson => {
            response.content_type = Some("text/html");
            response.body = Bytes::from_static(b"<html><body>Welcome to the proxy</body></html>\n");
        }
        Fault::StatusesWrongTyped => response.body = Bytes::from_static(wrong_typed.as_bytes()),
        Fault::StatusesHuge => response.body = pad(&response.body),
        Fault::StatusesOfOthers => response.body = change_ids(&response.body),
        _ => {}
    }
    response
}

/// Appends spaces, which JSON allows.
fn pad(body: &[u8]) -> Bytes {
    let mut padded = BytesMut::with_capacity(Fault::HUGE);
    padded.put_slice(body);
    padded.put_bytes(b' ', Fault::HUGE.saturating_sub(body.len()));
    padded.freeze()
}

/// Replaces every id by another one.
fn change_ids(body: &[u8]) -> Bytes {
    const ID_LENGTH: usize = 128;
    let is_digit = |byte: &u8| matches!(byte, b'0'..=b'9' | b'a'..=b'f');
    let mut changed = body.to_vec();
    for run in changed.chunk_by_mut(|a, b| is_digit(a) == is_digit(b)) {
        if run.len() == ID_LENGTH && run.iter().all(is_digit) {
            run.iter_mut().for_each(|digit| *digit = other_digit(*digit));
        }
    }
    changed.into()
}

fn other_digit(digit: u8) -> u8 {
    if digit == b'0' { b'1' } else { b'0' }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_ids_are_changed() {
        let body = format!("{{\"id\":\"{}\",\"n\":\"12\"}}", "a0".repeat(64));
        let changed = format!("{{\"id\":\"{}\",\"n\":\"12\"}}", "01".repeat(64));
        assert_eq!(change_ids(body.as_bytes()), changed);
    }
}
