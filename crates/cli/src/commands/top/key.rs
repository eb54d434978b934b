use std::str;

/// A key that the view knows.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum Key {
    Character(char),
    /// A text that was pasted: its characters are not keys.
    Pasted(String),
    Up,
    Down,
    PageUp,
    PageDown,
    Home,
    End,
    Enter,
    Escape,
    Backspace,
    Interrupt,
    /// A key without a meaning here.
    Other,
}

/// Reads keys from what a terminal sends.
#[derive(Debug, Default)]
pub(super) struct KeyReader {
    pending: Vec<u8>,
}

/// What terminals send before and after a pasted text.
const PASTE_BEGIN: &[u8] = b"\x1b[200~";
const PASTE_END: &[u8] = b"\x1b[201~";

impl KeyReader {
    /// The keys that are complete with these bytes.
    pub(super) fn read(&mut self, bytes: &[u8]) -> Vec<Key> {
        self.pending.extend_from_slice(bytes);
        let mut keys = Vec::new();
        while let Some((key, length)) = first_key(&self.pending) {
            keys.push(key);
            self.pending.drain(..length);
        }
        keys
    }

    /// Whether a key has begun and is not complete.
    pub(super) fn is_incomplete(&self) -> bool {
        !self.pending.is_empty() && !self.pending.starts_with(PASTE_BEGIN)
    }

    /// The key that has begun, when no more bytes follow: the sequences of other keys begin with Escape.
    pub(super) fn end(&mut self) -> Option<Key> {
        let pending = std::mem::take(&mut self.pending);
        pending.first().map(|first| if *first == 0x1b { Key::Escape } else { Key::Other })
    }
}

/// The first key and its length in bytes. `None`: more bytes are needed.
fn first_key(bytes: &[u8]) -> Option<(Key, usize)> {
    match bytes {
        [] => None,
        [0x1b, b'[' | b'O', ..] => sequence(bytes),
        [0x1b, _, ..] => Some((Key::Escape, 1)),
        [0x1b] => None,
        [b'\r' | b'\n', ..] => Some((Key::Enter, 1)),
        [0x7f | 0x08, ..] => Some((Key::Backspace, 1)),
        [0x03, ..] => Some((Key::Interrupt, 1)),
        [0x00..0x20, ..] => Some((Key::Other, 1)),
        [first, ..] => character(bytes, *first),
    }
}

fn character(bytes: &[u8], first: u8) -> Option<(Key, usize)> {
    let length = match first {
        0x00..0x80 => 1,
        0xc0..0xe0 => 2,
        0xe0..0xf0 => 3,
        0xf0..0xf8 => 4,
        _ => return Some((Key::Other, 1)),
    };
    let encoded = bytes.get(..length)?;
    let decoded = str::from_utf8(encoded).ok().and_then(|text| text.chars().next());
    Some(decoded.map_or((Key::Other, 1), |character| (Key::Character(character), length)))
}

/// An escape sequence: `ESC O` and a byte, or `ESC [`, parameters, and a byte that ends it.
fn sequence(bytes: &[u8]) -> Option<(Key, usize)> {
    if bytes.starts_with(PASTE_BEGIN) {
        return pasted(bytes);
    }
    let begins_with_o = bytes.get(1) == Some(&b'O');
    let is_end = |byte: &u8| begins_with_o || (0x40..0x7f).contains(byte);
    let end = 2 + bytes.get(2..)?.iter().position(is_end)?;
    let key = match bytes.get(2..=end)? {
        b"A" => Key::Up,
        b"B" => Key::Down,
        b"H" | b"1~" | b"7~" => Key::Home,
        b"F" | b"4~" | b"8~" => Key::End,
        b"5~" => Key::PageUp,
        b"6~" => Key::PageDown,
        _ => Key::Other,
    };
    Some((key, end + 1))
}

fn pasted(bytes: &[u8]) -> Option<(Key, usize)> {
    let text = bytes.get(PASTE_BEGIN.len()..)?;
    let end = text.windows(PASTE_END.len()).position(|window| window == PASTE_END)?;
    let pasted = String::from_utf8_lossy(text.get(..end)?).into_owned();
    Some((Key::Pasted(pasted), PASTE_BEGIN.len() + end + PASTE_END.len()))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn keys_are_read() {
        let keys = KeyReader::default()
            .read("q\r\u{7f}\u{3}é表\u{1b}[A\u{1b}OB\u{1b}[5~\u{1b}[1;5C\u{1}".as_bytes());
        let characters = ['é', '表'].map(Key::Character);
        let mut expected = vec![Key::Character('q'), Key::Enter, Key::Backspace, Key::Interrupt];
        expected.extend(characters);
        expected.extend([Key::Up, Key::Down, Key::PageUp, Key::Other, Key::Other]);
        assert_eq!(keys, expected);
    }

    #[test]
    fn keys_in_parts_are_read() {
        let mut reader = KeyReader::default();
        assert_eq!(reader.read(b"\x1b"), []);
        assert!(reader.is_incomplete());
        assert_eq!(reader.read(b"["), []);
        assert_eq!(reader.read(b"6~"), [Key::PageDown]);
        assert_eq!(reader.read(&[0xc3]), []);
        assert_eq!(reader.read(&[0xa9]), [Key::Character('é')]);
        assert_eq!(reader.read(&[0xff, 0xc3, b'a']), [Key::Other, Key::Other, Key::Character('a')]);
        assert!(!reader.is_incomplete());
    }

    #[test]
    fn escape_alone_is_a_key() {
        let mut reader = KeyReader::default();
        assert_eq!(reader.read(b"\x1b"), []);
        assert_eq!(reader.end(), Some(Key::Escape));
        assert_eq!(reader.end(), None);
        assert_eq!(reader.read(b"\x1bq"), [Key::Escape, Key::Character('q')]);
    }

    #[test]
    fn pasted_text_is_no_keys() {
        let mut reader = KeyReader::default();
        assert_eq!(reader.read(b"\x1b[200~pq\r"), []);
        assert!(!reader.is_incomplete());
        let keys = reader.read(b"x\x1b[201~q");
        assert_eq!(keys, [Key::Pasted("pq\rx".to_owned()), Key::Character('q')]);
    }
}
