/// So many characters are shown to people.
const SHOWN: usize = 500;

/// A text from outside as it may be shown to people: its beginning, in one line.
///
/// ```
/// use grid_batch_http::one_line;
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
    fn a_text_is_shown_in_one_line_and_not_whole() {
        assert_eq!(one_line([0xff; 3]), "\u{fffd}\u{fffd}\u{fffd}");
        assert_eq!(one_line(""), "");
        for letter in ["x", "é", "𝄞"] {
            assert_eq!(one_line(letter.repeat(SHOWN)), letter.repeat(SHOWN));
            assert_eq!(one_line(letter.repeat(10_000)), format!("{}…", letter.repeat(SHOWN)));
        }
    }
}
