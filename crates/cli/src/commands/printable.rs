/// The text without characters that control a terminal or change the order of the text: ids, reasons and errors come
/// from others.
pub(crate) fn printable(text: &str) -> String {
    text.chars().map(|c| if is_printable(c) { c } else { ' ' }).collect()
}

/// The same for a text of several lines.
pub(crate) fn printable_lines(text: &str) -> String {
    text.chars().map(|c| if c == '\n' || is_printable(c) { c } else { ' ' }).collect()
}

pub(crate) fn is_printable(character: char) -> bool {
    let reorders = matches!(character,
        '\u{61c}' | '\u{200b}'..='\u{200f}' | '\u{2028}'..='\u{202e}' | '\u{2060}'..='\u{206f}' | '\u{feff}');
    !character.is_control() && !reorders
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn control_characters_become_spaces() {
        assert_eq!(printable("a\u{1b}[2Jb\r\n\u{9b}31m\u{7f}c"), "a [2Jb   31m c");
        assert_eq!(printable("a\u{202e}b\u{2066}c\u{200b}d"), "a b c d");
        assert_eq!(printable("größe 表 ✓"), "größe 表 ✓");
    }
}
