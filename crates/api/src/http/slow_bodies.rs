use std::{
    collections::HashMap,
    sync::{Arc, Mutex},
    time::Duration,
};

use grid_batch_support::lock;
use tokio::{sync::Notify, time::Instant};

/// The bodies that are being read, and when each last made progress.
#[derive(Debug, Clone, Default)]
pub(crate) struct BodiesInProgress(Arc<Mutex<Bodies>>);

#[derive(Debug, Default)]
struct Bodies {
    next_id: u64,
    by_id: HashMap<u64, BodyProgress>,
}

#[derive(Debug)]
struct BodyProgress {
    received: usize,
    /// When the last step was complete.
    step_at: Instant,
    refuse: Arc<Notify>,
}

/// A body that is being read. Dropping it ends that.
#[derive(Debug)]
pub(crate) struct BodyInProgress {
    bodies: BodiesInProgress,
    id: u64,
    refuse: Arc<Notify>,
}

impl BodiesInProgress {
    /// A body is slow if it needs longer than `STEP_LIMIT` for so many bytes.
    const STEP: usize = 64 * 1024;
    const STEP_LIMIT: Duration = Duration::from_secs(2);

    pub(crate) fn begin(&self) -> BodyInProgress {
        let mut bodies = lock(&self.0);
        let id = bodies.next_id;
        bodies.next_id += 1;
        let refuse = Arc::new(Notify::new());
        let progress =
            BodyProgress { received: 0, step_at: Instant::now(), refuse: Arc::clone(&refuse) };
        bodies.by_id.insert(id, progress);
        drop(bodies);
        BodyInProgress { bodies: self.clone(), id, refuse }
    }
}

impl BodyInProgress {
    /// So many bytes have arrived in all.
    pub(crate) fn received(&self, length: usize) {
        let mut bodies = lock(&self.bodies.0);
        let Some(progress) = bodies.by_id.get_mut(&self.id) else { return };
        if length / BodiesInProgress::STEP > progress.received / BodiesInProgress::STEP {
            progress.step_at = Instant::now();
        }
        progress.received = length;
    }

    /// Waits until another body needs the memory of this one.
    pub(crate) async fn refused(&self) {
        self.refuse.notified().await;
    }

    /// Refuses the slowest of the other bodies, if one is slow.
    pub(crate) fn refuse_slowest_other(&self) -> bool {
        let now = Instant::now();
        let mut bodies = lock(&self.bodies.0);
        let slow = bodies.by_id.iter().filter(|(id, progress)| {
            **id != self.id && now.duration_since(progress.step_at) >= BodiesInProgress::STEP_LIMIT
        });
        let Some(slowest) = slow.min_by_key(|(_, progress)| progress.step_at).map(|(id, _)| *id)
        else {
            return false;
        };
        if let Some(progress) = bodies.by_id.remove(&slowest) {
            progress.refuse.notify_one();
        }
        true
    }
}

impl Drop for BodyInProgress {
    fn drop(&mut self) {
        lock(&self.bodies.0).by_id.remove(&self.id);
    }
}

#[cfg(test)]
mod tests {
    use tokio::time::{advance, timeout};

    use super::*;

    #[tokio::test(start_paused = true)]
    async fn slowest_body_is_refused_and_a_steady_one_is_not() {
        let bodies = BodiesInProgress::default();
        let [slow, steady, new] = [bodies.begin(), bodies.begin(), bodies.begin()];
        slow.received(10 * BodiesInProgress::STEP);
        for step in 1..=3 {
            advance(Duration::from_secs(1)).await;
            slow.received(10 * BodiesInProgress::STEP + step);
            steady.received(step * BodiesInProgress::STEP);
            new.received(step * BodiesInProgress::STEP);
        }
        assert!(new.refuse_slowest_other());
        timeout(Duration::from_secs(1), slow.refused()).await.unwrap();
        assert!(!new.refuse_slowest_other());
        assert!(timeout(Duration::from_secs(1), steady.refused()).await.is_err());
    }
}
