mod followed;
mod listener;
mod monitor;
mod options;

pub use followed::EventFollower;
pub use monitor::{EventMonitor, RunningEventMonitor};
pub use options::EventOptions;
