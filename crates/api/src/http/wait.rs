use std::time::Duration;

use grid_batch_core::Excerpt;
use serde::{Deserialize, Deserializer, de};

/// The parameter `wait`: a number of seconds.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct WaitSeconds(u32);

impl WaitSeconds {
    /// The wait, or this one if it is shorter.
    pub(crate) fn at_most(self, limit: Duration) -> Duration {
        limit.min(Duration::from_secs(self.0.into()))
    }
}

impl<'de> Deserialize<'de> for WaitSeconds {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let text = String::deserialize(deserializer)?;
        text.parse().map(Self).map_err(|_| {
            let given = Excerpt::of(&text);
            de::Error::custom(format!("it is {given}; it must be a number of seconds"))
        })
    }
}
