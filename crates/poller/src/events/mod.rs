mod follower;
mod listener;
mod monitor;
mod options;
mod silence;

pub use follower::EventFollower;
pub use monitor::{EventMonitor, RunningEventMonitor};
pub use options::EventOptions;
