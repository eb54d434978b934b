use crate::commands::{print::print_stdout, printable::printable};

/// The maximum length of a printed line, unless a word is longer.
pub(in crate::commands) const LINE_WIDTH: usize = 80;

/// Prints a text in lines of up to [`LINE_WIDTH`] characters. The first line begins with `first`, the others
/// with as many spaces.
pub(in crate::commands) fn print_wrapped(first: &str, text: &str) {
    for line in wrapped(first, text, LINE_WIDTH) {
        print_stdout(line);
    }
}

/// The lines of a text without control characters, each of up to this many characters.
pub(in crate::commands) fn wrapped(first: &str, text: &str, width: usize) -> Vec<String> {
    let (first, text) = (printable(first), printable(text));
    let indent = first.chars().count();
    let mut lines = Vec::new();
    let (mut line, mut length) = (first, indent);
    for word in text.split_whitespace() {
        let word_length = word.chars().count();
        if length > indent && length + 1 + word_length > width {
            lines.push(std::mem::replace(&mut line, " ".repeat(indent)));
            length = indent;
        } else if length > indent {
            line.push(' ');
            length += 1;
        }
        line.push_str(word);
        length += word_length;
    }
    lines.push(line);
    lines
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lines_fit_and_lose_no_word() {
        let text = "some words of a reason ".repeat(12);
        let lines = wrapped("reason     ", &text, LINE_WIDTH);
        assert!(lines.len() > 3);
        assert!(lines.iter().all(|line| line.chars().count() <= LINE_WIDTH), "{lines:?}");
        assert!(lines[1..].iter().all(|line| line.starts_with(&" ".repeat(11))), "{lines:?}");
        let words: Vec<_> = lines.iter().flat_map(|line| line.split_whitespace()).collect();
        assert_eq!(words.join(" "), format!("reason {}", text.trim_end()));
    }

    #[test]
    fn long_words_are_not_split() {
        let word = "x".repeat(100);
        assert_eq!(wrapped("  ", &format!("a {word} b"), 80), ["  a", &format!("  {word}"), "  b"]);
        assert_eq!(wrapped("a ", "", 80), ["a "]);
    }
}
