use std::{
    collections::HashMap,
    sync::{Mutex, MutexGuard, PoisonError},
    time::Duration,
};

use grid_batch_core::MonotonicTime;

/// The nodes that did not answer when they were last asked to confirm what another one shows.
///
/// They are skipped for a while, so that withdrawals do not wait for the timeout of a node that is down.
#[derive(Debug, Default)]
pub(crate) struct SkippedNodes(Mutex<HashMap<String, MonotonicTime>>);

impl SkippedNodes {
    const SKIPPED_FOR: Duration = Duration::from_secs(30);

    /// Whether the node is skipped now.
    pub(crate) fn contains(&self, url: &str, now: MonotonicTime) -> bool {
        self.lock().get(url).is_some_and(|since| now.since(*since) < Self::SKIPPED_FOR)
    }

    pub(crate) fn note(&self, url: &str, has_answered: bool, now: MonotonicTime) {
        let mut nodes = self.lock();
        if has_answered {
            nodes.remove(url);
        } else {
            nodes.insert(url.to_owned(), now);
        }
    }

    fn lock(&self) -> MutexGuard<'_, HashMap<String, MonotonicTime>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn node_is_skipped_until_it_answers_or_for_a_while() {
        let at = |seconds| MonotonicTime::default().plus(Duration::from_secs(seconds));
        let nodes = SkippedNodes::default();
        nodes.note("a", false, at(0));
        assert!(nodes.contains("a", at(29)) && !nodes.contains("b", at(0)));
        assert!(!nodes.contains("a", at(30)));
        nodes.note("a", false, at(30));
        nodes.note("a", true, at(31));
        assert!(!nodes.contains("a", at(31)));
    }
}
