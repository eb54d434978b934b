use crate::{SettingValue, edit_distance};

const LEVELS: [&str; 6] = ["off", "error", "warn", "info", "debug", "trace"];

/// A filter of the log in the syntax of `env_logger`, of which each part is a level or `TARGET=LEVEL`. It must say what is
/// meant: `env_logger` takes a misspelled level for the name of a crate, and logs nothing.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct LogFilter(String);

impl LogFilter {
    /// The text for `env_logger`.
    pub fn as_str(&self) -> &str {
        &self.0
    }
}

impl std::str::FromStr for LogFilter {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let parts: Vec<&str> = text.split(',').map(str::trim).collect();
        match parts.iter().find(|part| !is_valid(part)) {
            None => Ok(Self(text.to_owned())),
            Some(part) => Err(rule(part)),
        }
    }
}

impl SettingValue for LogFilter {
    fn parse(text: &str) -> Result<Self, String> {
        text.parse()
    }
}

fn is_valid(part: &str) -> bool {
    match part.split_once('=') {
        None => is_level(part),
        Some((target, level)) => is_target(target.trim()) && is_level(level.trim()),
    }
}

fn is_level(text: &str) -> bool {
    LEVELS.iter().any(|level| level.eq_ignore_ascii_case(text))
}

fn is_target(text: &str) -> bool {
    let is_part = |c: char| c.is_ascii_alphanumeric() || "_:-".contains(c);
    !text.is_empty() && text.chars().all(is_part)
}

fn rule(part: &str) -> String {
    let word = part.rsplit('=').next().unwrap_or_default().trim().to_lowercase();
    let nearest = LEVELS.iter().find(|level| edit_distance(&word, level) <= 2);
    let suggestion = nearest.map(|level| format!("; did you mean {level}?")).unwrap_or_default();
    format!(
        "it must be off, error, warn, info, debug or trace, or levels by crate such as \
         \"info,grid_batch_poller=debug\"{suggestion}"
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn levels_and_levels_by_crate_are_accepted() {
        for text in ["info", "OFF", "warn,grid_batch_poller=trace", "info, a::b-c = debug"] {
            assert!(text.parse::<LogFilter>().is_ok(), "{text}");
        }
    }

    #[test]
    fn misspelled_level_is_refused_with_the_nearest() {
        for (text, suggestion) in [
            ("infoo", "; did you mean info?"),
            ("info,x=wran", "; did you mean warn?"),
            ("", "trace"),
            ("info,", "debug"),
            ("grid_batch_poller", "by crate"),
            ("=info", "by crate"),
            ("a b=info", "by crate"),
        ] {
            let error = text.parse::<LogFilter>().err().unwrap();
            assert!(error.contains(suggestion), "{text}: {error}");
        }
    }
}
