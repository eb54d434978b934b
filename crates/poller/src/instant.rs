use std::time::Duration;

use tokio::time::Instant;

/// The instant `duration` after `start`. A duration that would overflow becomes a year.
pub(crate) fn after(start: Instant, duration: Duration) -> Instant {
    const LONGEST: Duration = Duration::from_hours(24 * 365);
    start + duration.min(LONGEST)
}
