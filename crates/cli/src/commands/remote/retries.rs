use std::{
    thread,
    time::{Duration, Instant},
};

use clap::Args;
use grid_batch_client::ClientError;
use grid_batch_support::Backoff;

use crate::commands::arguments::parse_duration;

#[derive(Debug, Clone, Copy, Args)]
pub(in crate::commands) struct TimeoutArg {
    /// Time limit for the whole command
    #[arg(long, value_name = "DURATION", default_value = "5m", value_parser = parse_duration)]
    timeout: Duration,
}

impl TimeoutArg {
    /// Retries until the time has passed.
    pub(in crate::commands) fn retries(self) -> Retries {
        Retries::until(self.timeout)
    }
}

/// How long a command repeats a request while the server is busy.
#[derive(Debug, Clone, Copy)]
pub(in crate::commands) struct Retries {
    deadline: Instant,
}

impl Retries {
    const PAUSES: Backoff =
        Backoff { first: Duration::from_millis(200), longest: Duration::from_secs(10) };

    pub(in crate::commands) fn until(limit: Duration) -> Self {
        let now = Instant::now();
        let far = Duration::from_secs(365 * 24 * 60 * 60);
        Self { deadline: now + limit.min(far) }
    }

    /// The time that is left.
    pub(in crate::commands) fn left(&self) -> Duration {
        self.deadline.saturating_duration_since(Instant::now())
    }

    /// Runs the request, and repeats it while the server is busy and there is time.
    pub(in crate::commands) fn run<T>(
        &self,
        mut request: impl FnMut() -> Result<T, ClientError>,
    ) -> Result<T, ClientError> {
        let mut failures = 0;
        loop {
            let answer = request();
            let Err(ClientError::Busy { retry_after, .. }) = &answer else { return answer };
            let pause = retry_after.unwrap_or(Self::PAUSES.whole_delay(failures));
            let wait = pause.clamp(Self::PAUSES.first, Self::PAUSES.longest);
            // A server that asks for more time than there is, as after the limit of a day, is not asked again.
            if pause.max(wait) > self.left() {
                return answer;
            }
            thread::sleep(wait);
            failures += 1;
        }
    }
}

#[cfg(test)]
mod tests {
    use grid_batch_client::Problem;

    use super::*;

    #[test]
    fn longer_pause_than_the_time_that_is_left_ends_it() {
        let mut requests = 0;
        let answer: Result<(), _> = Retries::until(Duration::from_secs(300)).run(|| {
            requests += 1;
            let problem = Problem { code: Some(1042), text: "the limit of the day".to_owned() };
            Err(ClientError::Busy { problem, retry_after: Some(Duration::from_secs(600)) })
        });
        assert!(answer.is_err());
        assert_eq!(requests, 1);
    }
}
