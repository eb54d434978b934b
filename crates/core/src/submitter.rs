use crate::InternalError;

/// Shuts a component down in two steps, so that several can shut down at the same time.
pub trait ShutdownHandle {
    /// Requests the shutdown.
    fn signal_shutdown(&mut self) -> Result<(), InternalError>;

    /// Waits until it has shut down.
    fn wait_for_shutdown(self) -> Result<(), InternalError>;
}
