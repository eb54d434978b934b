use bytes::{BufMut, Bytes, BytesMut};
use hyper::StatusCode;

use crate::{Fault, answer::Answer, common::Common};

const KINDS: [Fault; 6] = [
    Fault::StatusesBroken,
    Fault::StatusesTruncated,
    Fault::StatusesNotJson,
    Fault::StatusesWrongTyped,
    Fault::StatusesHuge,
    Fault::StatusesOfOthers,
];

/// Spoils an answer with statuses in the first way that strikes.
pub(crate) fn spoil(answer: Answer, wrong_typed: &'static str, common: &mut Common) -> Answer {
    if answer.status != StatusCode::OK {
        return answer;
    }
    match KINDS.into_iter().find(|kind| common.faults.strikes(*kind)) {
        Some(kind) => spoil_with(kind, answer, wrong_typed),
        None => answer,
    }
}

fn spoil_with(kind: Fault, mut answer: Answer, wrong_typed: &'static str) -> Answer {
    match kind {
        Fault::StatusesBroken => answer.breaks = true,
        Fault::StatusesTruncated => answer.body.truncate(answer.body.len() / 2),
        Fault::StatusesNotJson => {
            answer.content_type = Some("text/html");
            answer.body = Bytes::from_static(b"<html><body>Welcome to the proxy</body></html>\n");
        }
        Fault::StatusesWrongTyped => answer.body = Bytes::from_static(wrong_typed.as_bytes()),
        Fault::StatusesHuge => answer.body = pad(&answer.body),
        Fault::StatusesOfOthers => answer.body = change_ids(&answer.body),
        _ => {}
    }
    answer
}

/// JSON may end in any number of spaces.
fn pad(body: &[u8]) -> Bytes {
    let mut padded = BytesMut::with_capacity(Fault::HUGE);
    padded.put_slice(body);
    padded.put_bytes(b' ', Fault::HUGE.saturating_sub(body.len()));
    padded.freeze()
}

/// Turns every id into another one.
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
