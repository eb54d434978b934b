/// The maximum length of the text, in characters.
const SHOWN: usize = 500;

/// The beginning of an external text, as one line without control characters.
///
/// ```
/// use grid_batch_support::one_line;
///
/// assert_eq!(one_line("{\n  \"a\":\t1\u{7}}\n"), "{ \"a\": 1 }");
/// ```
pub fn one_line(text: impl AsRef<[u8]>) -> String {
    const LONGEST_CHARACTER: usize = 4;
    let bytes = text.as_ref();
    let beginning = &bytes[..bytes.len().min(LONGEST_CHARACTER * (SHOWN + 1))];
    let text = String::from_utf8_lossy(beginning);
    let words: Vec<&str> = text
        .split(|c: char| c.is_whitespace() || c.is_control())
        .filter(|word| !word.is_empty())
        .collect();
    let line = words.join(" ");
    match line.char_indices().nth(SHOWN) {
        Some((end, _)) => format!("{}…", &line[..end]),
        None => line,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn long_text_is_cut() {
        assert_eq!(one_line([0xff; 3]), "\u{fffd}\u{fffd}\u{fffd}");
        assert_eq!(one_line(""), "");
        for letter in ["x", "é", "𝄞"] {
            assert_eq!(one_line(letter.repeat(SHOWN)), letter.repeat(SHOWN));
            assert_eq!(one_line(letter.repeat(10_000)), format!("{}…", letter.repeat(SHOWN)));
        }
    }
}
