//! Frames of a websocket: short ones, each a message of its own.

/// A frame that a client has sent.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum ClientFrame {
    Text,
    Ping(Vec<u8>),
    Close,
    Other,
}

/// Takes the first frame out of the buffer. `None` if it is not complete.
pub(super) fn take_frame(buffer: &mut Vec<u8>) -> Option<ClientFrame> {
    let [first, second, ..] = buffer[..] else { return None };
    let (length, mask_at) = match second & 0x7f {
        126 => (usize::from(u16::from_be_bytes([*buffer.get(2)?, *buffer.get(3)?])), 4),
        127 => return Some(ClientFrame::Close),
        length => (usize::from(length), 2),
    };
    let end = mask_at + 4 + length;
    let masked = buffer.get(mask_at..end)?;
    let (mask, payload) = masked.split_at(4);
    let payload = payload.iter().zip(mask.iter().cycle()).map(|(byte, mask)| byte ^ mask).collect();
    buffer.drain(..end);
    Some(match first & 0x0f {
        0x1 => ClientFrame::Text,
        0x8 => ClientFrame::Close,
        0x9 => ClientFrame::Ping(payload),
        _ => ClientFrame::Other,
    })
}

pub(super) fn text(payload: &str) -> Vec<u8> {
    frame(0x1, payload.as_bytes())
}

pub(super) fn pong(payload: &[u8]) -> Vec<u8> {
    frame(0xa, payload)
}

pub(super) fn ping() -> Vec<u8> {
    frame(0x9, &[])
}

pub(super) fn close() -> Vec<u8> {
    frame(0x8, &[])
}

fn frame(operation: u8, payload: &[u8]) -> Vec<u8> {
    let mut frame = vec![0x80 | operation];
    match u8::try_from(payload.len()) {
        Ok(length) if length < 126 => frame.push(length),
        _ => {
            frame.push(126);
            let length = u16::try_from(payload.len()).unwrap_or(u16::MAX);
            frame.extend_from_slice(&length.to_be_bytes());
        }
    }
    frame.extend_from_slice(payload);
    frame
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn masked_frames_are_taken_one_by_one() {
        let mut buffer = vec![0x89, 0x82, 1, 2, 3, 4, b'h' ^ 1, b'i' ^ 2, 0x88, 0x80, 0, 0, 0];
        assert_eq!(take_frame(&mut buffer), Some(ClientFrame::Ping(b"hi".to_vec())));
        assert_eq!(take_frame(&mut buffer), None);
        buffer.push(0);
        assert_eq!(take_frame(&mut buffer), Some(ClientFrame::Close));
        assert_eq!(take_frame(&mut buffer), None);
    }

    #[test]
    fn long_texts_have_a_long_length() {
        assert_eq!(text("hi"), [0x81, 2, b'h', b'i']);
        assert_eq!(text(&"x".repeat(300))[..4], [0x81, 126, 1, 44]);
    }
}
