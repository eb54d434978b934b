//! How wide a text is on a terminal: some characters take two columns, others none.

use unicode_width::{UnicodeWidthChar, UnicodeWidthStr};

/// How many columns of a terminal a text takes.
pub(super) fn columns(text: &str) -> usize {
    text.width()
}

/// The text in at most this many columns; a text that is cut ends with an ellipsis.
pub(super) fn cut(text: &str, width: usize) -> String {
    if columns(text) <= width {
        text.to_owned()
    } else if width == 0 {
        String::new()
    } else {
        format!("{}…", first_columns(text, width - 1))
    }
}

/// The text in exactly this many columns, cut or filled with spaces.
pub(super) fn fit(text: &str, width: usize) -> String {
    let text = cut(text, width);
    let missing = width - columns(&text);
    text + &" ".repeat(missing)
}

/// The beginning of a text that takes at most this many columns.
pub(super) fn first_columns(text: &str, width: usize) -> &str {
    let mut taken = 0;
    let end = text.char_indices().find(|(_, character)| {
        taken += character.width().unwrap_or(0);
        taken > width
    });
    end.map_or(text, |(end, _)| &text[..end])
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn wide_characters_take_two_columns() {
        assert_eq!(fit("表表表", 4), "表… ");
        assert_eq!(fit("表", 4), "表  ");
        assert_eq!(columns(&fit("ab表cd", 5)), 5);
        assert_eq!(fit("abc", 0), "");
        assert_eq!((cut("abc", 3), cut("abcd", 3)), ("abc".to_owned(), "ab…".to_owned()));
    }
}
