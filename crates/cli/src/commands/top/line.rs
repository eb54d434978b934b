use crate::commands::{
    columns::{columns, first_columns},
    printable::printable,
};

/// The style of a part of a line. A word always says the same as the style.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub(super) enum Style {
    #[default]
    Plain,
    Bold,
    Faint,
    Selected,
    Warning,
    Problem,
}

/// A line of the view: texts with their styles, without control characters.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub(super) struct Line {
    parts: Vec<(String, Style)>,
}

impl Line {
    pub(super) fn new(text: impl AsRef<str>, style: Style) -> Self {
        Self::default().with(text, style)
    }

    pub(super) fn plain(text: impl AsRef<str>) -> Self {
        Self::new(text, Style::Plain)
    }

    /// The line with another part at its end.
    pub(super) fn with(mut self, text: impl AsRef<str>, style: Style) -> Self {
        self.parts.push((printable(text.as_ref()), style));
        self
    }

    /// The line in at most this many columns; a line that is cut ends with an ellipsis.
    pub(super) fn cut(self, width: usize) -> Self {
        if self.parts.iter().map(|(text, _)| columns(text)).sum::<usize>() <= width {
            return self;
        }
        let mut left = width.saturating_sub(1);
        let mut parts = Vec::new();
        for (text, style) in self.parts {
            let kept = first_columns(&text, left);
            let is_cut = kept.len() < text.len();
            left -= columns(kept);
            let ellipsis = if is_cut && width > 0 { "…" } else { "" };
            parts.push((format!("{kept}{ellipsis}"), style));
            if is_cut {
                break;
            }
        }
        Self { parts }
    }

    /// The line as a text without styles.
    pub(super) fn text(&self) -> String {
        self.parts.iter().map(|(text, _)| text.as_str()).collect()
    }

    /// The line as a terminal shows it.
    pub(super) fn escaped(&self, colours: bool) -> String {
        let part = |(text, style): &(String, Style)| match codes(*style, colours) {
            "" => text.clone(),
            codes => format!("\u{1b}[{codes}m{text}\u{1b}[0m"),
        };
        self.parts.iter().map(part).collect()
    }
}

fn codes(style: Style, colours: bool) -> &'static str {
    match (style, colours) {
        (Style::Plain, _) => "",
        (Style::Bold, _) => "1",
        (Style::Faint, _) => "2",
        (Style::Selected, _) => "7",
        (Style::Warning, true) => "33",
        (Style::Problem, true) => "31;1",
        (Style::Warning | Style::Problem, false) => "1",
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn line_is_cut_within_its_parts() {
        let line = Line::plain("abc").with("defg", Style::Bold).with("h", Style::Plain);
        assert_eq!(line.clone().cut(8).text(), "abcdefgh");
        assert_eq!(line.clone().cut(6).text(), "abcde…");
        assert_eq!(line.clone().cut(3).text(), "ab…");
        assert_eq!(line.cut(0).text(), "");
    }

    #[test]
    fn texts_of_others_do_not_control_the_terminal() {
        let line = Line::new("a\u{1b}]0;title\u{7}b", Style::Problem);
        assert_eq!(line.escaped(true), "\u{1b}[31;1ma ]0;title b\u{1b}[0m");
        assert_eq!(line.escaped(false), "\u{1b}[1ma ]0;title b\u{1b}[0m");
    }
}
