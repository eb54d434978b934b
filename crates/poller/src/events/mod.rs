mod follower;
mod listener;
mod monitor;
mod options;
mod silence;

pub use follower::EventFollower;
pub use monitor::EventMonitor;
pub use options::EventOptions;
