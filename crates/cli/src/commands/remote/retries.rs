use std::{
    thread,
    time::{Duration, Instant},
};

use grid_batch_client::ClientError;

/// How long a command tries again what a server cannot do now.
#[derive(Debug, Clone, Copy)]
pub(in crate::commands) struct Retries {
    deadline: Instant,
}

impl Retries {
    const FIRST_PAUSE: Duration = Duration::from_millis(200);
    const LONGEST_PAUSE: Duration = Duration::from_secs(10);

    pub(in crate::commands) fn until(limit: Duration) -> Self {
        let now = Instant::now();
        let far = Duration::from_secs(365 * 24 * 60 * 60);
        Self { deadline: now + limit.min(far) }
    }

    /// The time that is left.
    pub(in crate::commands) fn left(&self) -> Duration {
        self.deadline.saturating_duration_since(Instant::now())
    }

    /// Does it, and again while the server is busy and there is time.
    pub(in crate::commands) fn run<T>(
        &self,
        mut request: impl FnMut() -> Result<T, ClientError>,
    ) -> Result<T, ClientError> {
        let mut pause = Self::FIRST_PAUSE;
        loop {
            let error = match request() {
                Err(error @ ClientError::Busy { .. }) => error,
                answered => return answered,
            };
            let asked = match &error {
                ClientError::Busy { retry_after, .. } => *retry_after,
                _ => None,
            };
            let wait = asked.unwrap_or(pause).clamp(Self::FIRST_PAUSE, Self::LONGEST_PAUSE);
            if wait > self.left() {
                return Err(error);
            }
            thread::sleep(wait);
            pause = (pause * 2).min(Self::LONGEST_PAUSE);
        }
    }
}
