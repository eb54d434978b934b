use std::{
    collections::{HashMap, HashSet},
    hash::{DefaultHasher, Hash, Hasher},
    time::{Duration, Instant},
};

use log::Level;

/// Counts lines with the same message, and decides which to leave out and sum up.
/// In the first window of time, a number of lines with the same level, target and message is logged. While a message is
/// repeated, one line of it is logged in each further window.
#[derive(Debug)]
pub(super) struct RepeatedLines {
    /// How many lines are logged in the first window.
    most: u32,
    messages: HashMap<MessageKey, Window>,
}

/// The common part of lines that are summed up.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub(super) struct MessageKey {
    pub(super) level: Level,
    pub(super) target: String,
    pub(super) message: String,
}

#[derive(Debug)]
struct Window {
    began: Instant,
    /// How many more lines are logged in it.
    left: u32,
    left_out: u64,
    services: Services,
}

/// The services of lines that were left out: the names of the first ones, and how many there are.
#[derive(Debug, Default)]
struct Services {
    names: Vec<String>,
    hashes: HashSet<u64>,
}

/// The lines that were left out in a window.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct Summary {
    pub(super) key: MessageKey,
    pub(super) times: u64,
    pub(super) seconds: u64,
    /// Such as `a, b, c and 7 others`; empty without services.
    pub(super) services: String,
}

impl RepeatedLines {
    pub(super) const WINDOW: Duration = Duration::from_secs(10);
    /// Limit on the number of messages that are remembered. Further ones are all logged.
    const MAX_MESSAGES: usize = 1_000;

    pub(super) fn new(most: u32) -> Self {
        Self { most, messages: HashMap::new() }
    }

    /// Whether a line is logged.
    pub(super) fn admit(&mut self, key: MessageKey, service: Option<&str>, now: Instant) -> bool {
        if self.messages.len() >= Self::MAX_MESSAGES && !self.messages.contains_key(&key) {
            return true;
        }
        let new =
            Window { began: now, left: self.most, left_out: 0, services: Services::default() };
        let window = self.messages.entry(key).or_insert(new);
        if window.left > 0 {
            window.left -= 1;
            return true;
        }
        window.left_out += 1;
        service.into_iter().for_each(|service| window.services.add(service));
        false
    }

    /// Ends the windows whose time has passed, or `all`, and sums up the lines that were left out in them.
    pub(super) fn end_windows(&mut self, now: Instant, all: bool) -> Vec<Summary> {
        let mut summaries = Vec::new();
        self.messages.retain(|key, window| {
            let lasted = now.duration_since(window.began);
            if lasted < Self::WINDOW && !all {
                return true;
            }
            if window.left_out == 0 {
                return false;
            }
            summaries.push(Summary {
                key: key.clone(),
                times: window.left_out,
                seconds: lasted.as_secs(),
                services: window.services.text(),
            });
            *window = Window { began: now, left: 1, left_out: 0, services: Services::default() };
            true
        });
        summaries
    }
}

impl Services {
    const NAMED: usize = 3;
    /// Limit on the number of services that are counted as different ones.
    const MAX_COUNTED: usize = 100_000;

    fn add(&mut self, service: &str) {
        let mut hasher = DefaultHasher::new();
        service.hash(&mut hasher);
        let is_new = self.hashes.len() < Self::MAX_COUNTED && self.hashes.insert(hasher.finish());
        if is_new && self.names.len() < Self::NAMED {
            self.names.push(service.to_owned());
        }
    }

    fn text(&self) -> String {
        let others = self.hashes.len() - self.names.len();
        match (others, self.names.as_slice()) {
            (0, [first @ .., last]) if !first.is_empty() => {
                format!("{} and {last}", first.join(", "))
            }
            (0, names) => names.join(", "),
            (1, names) => format!("{} and 1 other", names.join(", ")),
            (_, names) => format!("{} and {others} others", names.join(", ")),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const SECOND: Duration = Duration::from_secs(1);

    fn key(message: &str) -> MessageKey {
        let (target, message) = ("t".to_owned(), message.to_owned());
        MessageKey { level: Level::Warn, target, message }
    }

    #[test]
    fn thousand_services_give_some_lines_and_a_summary() {
        let (mut lines, start) = (RepeatedLines::new(10), Instant::now());
        let services: Vec<String> = (0..1_000).map(|number| format!("s{number}")).collect();
        let admit = |service: &&String| lines.admit(key("fails"), Some(service), start);
        assert_eq!(services.iter().filter(admit).count(), 10);
        assert_eq!(lines.end_windows(start + SECOND * 9, false), []);
        let services = "s10, s11, s12 and 987 others".to_owned();
        let summary = Summary { key: key("fails"), times: 990, seconds: 10, services };
        assert_eq!(lines.end_windows(start + SECOND * 10, false), [summary]);
        let later = [(); 3].map(|()| lines.admit(key("fails"), None, start + SECOND * 11));
        assert_eq!(later, [true, false, false], "it goes on");
    }

    #[test]
    fn message_that_is_not_repeated_is_forgotten() {
        let (mut lines, start) = (RepeatedLines::new(1), Instant::now());
        assert!(lines.admit(key("a"), None, start) && lines.admit(key("b"), None, start));
        assert_eq!(lines.end_windows(start + SECOND * 10, false), []);
        assert!(lines.messages.is_empty());
    }

    #[test]
    fn last_window_is_summed_up_at_the_end() {
        let (mut lines, start) = (RepeatedLines::new(1), Instant::now());
        for service in ["a", "b", "a", "c"] {
            lines.admit(key("a"), Some(service), start);
        }
        let summaries = lines.end_windows(start, true);
        assert_eq!((summaries.len(), summaries[0].times), (1, 3));
        assert_eq!(summaries[0].services, "b, a and c");
    }

    #[test]
    fn messages_are_bounded() {
        let (mut lines, start) = (RepeatedLines::new(1), Instant::now());
        for number in 0..RepeatedLines::MAX_MESSAGES + 10 {
            assert!(lines.admit(key(&number.to_string()), None, start));
        }
        assert_eq!(lines.messages.len(), RepeatedLines::MAX_MESSAGES);
    }
}
