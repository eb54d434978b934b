//! Reports to systemd, if it has started the server: that it is ready, that it works, that it stops.
//!
//! The protocol is that of `sd_notify(3)`: lines in a datagram to the socket that `NOTIFY_SOCKET` names.

use std::{
    env, io,
    os::unix::net::{SocketAddr, UnixDatagram},
    process,
    time::Duration,
};

use grid_batch_core::InternalError;
use grid_batch_support::PeriodicThread;
use log::warn;

/// The service manager, if there is one. Clones report to the same one.
#[derive(Debug, Clone)]
pub(super) struct ServiceManager {
    socket: Option<SocketAddr>,
    /// The manager restarts the server unless the server reports within this time that it works.
    watchdog: Option<Duration>,
}

impl ServiceManager {
    /// The service manager that the environment names.
    pub(super) fn of_environment() -> Self {
        let variable = |name| env::var(name).ok();
        let socket = variable("NOTIFY_SOCKET").and_then(|name| address(&name).ok());
        let is_meant = variable("WATCHDOG_PID").is_none_or(|id| id == process::id().to_string());
        let limit = variable("WATCHDOG_USEC").filter(|_| is_meant);
        let watchdog = limit.and_then(|text| text.parse().ok()).map(Duration::from_micros);
        Self { socket, watchdog }
    }

    /// The server accepts requests.
    pub(super) fn ready(&self, url: &str) {
        self.notify(&format!("READY=1\nSTATUS=Accepting requests at {url}\n"));
    }

    /// The server is shutting down.
    pub(super) fn stopping(&self) {
        self.notify("STOPPING=1\nSTATUS=Shutting down\n");
    }

    /// Reports at half of the interval that the server works, as long as `works` returns `true`.
    pub(super) fn watch(
        &self,
        works: impl Fn(Duration) -> bool + Send + 'static,
    ) -> Result<Option<PeriodicThread>, InternalError> {
        let Some(limit) = self.watchdog.filter(|_| self.socket.is_some()) else { return Ok(None) };
        let (manager, interval) = (self.clone(), limit / 2);
        let watch = move || {
            if works(interval / 2) {
                manager.notify("WATCHDOG=1\n");
            } else {
                warn!(
                    "the HTTP interface does not answer; the service manager will restart the server"
                );
            }
        };
        PeriodicThread::start("watchdog", interval, watch).map(Some)
    }

    /// A manager that does not listen does not disturb the server.
    fn notify(&self, lines: &str) {
        let Some(address) = &self.socket else { return };
        let sent = UnixDatagram::unbound()
            .and_then(|socket| socket.send_to_addr(lines.as_bytes(), address));
        if let Err(error) = sent {
            warn!(error:% = error; "the service manager cannot be notified");
        }
    }
}

/// The address of a socket: a path or, with `@`, a name that is no file.
fn address(name: &str) -> io::Result<SocketAddr> {
    match name.strip_prefix('@') {
        #[cfg(target_os = "linux")]
        Some(name) => <SocketAddr as std::os::linux::net::SocketAddrExt>::from_abstract_name(name),
        _ => SocketAddr::from_pathname(name),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn received(socket: &UnixDatagram) -> String {
        let mut buffer = [0; 256];
        let length = socket.recv(&mut buffer).unwrap();
        String::from_utf8(buffer[..length].to_vec()).unwrap()
    }

    #[test]
    fn manager_hears_of_each_phase() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("notify");
        let socket = UnixDatagram::bind(&path).unwrap();
        let manager = ServiceManager {
            socket: Some(address(path.to_str().unwrap()).unwrap()),
            watchdog: Some(Duration::from_millis(20)),
        };
        manager.ready("http://127.0.0.1:1");
        assert!(received(&socket).starts_with("READY=1\n"));
        let watch = manager.watch(|_| true).unwrap();
        assert_eq!(received(&socket), "WATCHDOG=1\n");
        drop(watch);
        manager.stopping();
        let last = std::iter::repeat_with(|| received(&socket)).find(|it| it != "WATCHDOG=1\n");
        assert!(last.unwrap().starts_with("STOPPING=1\n"));
    }

    #[test]
    fn without_a_manager_nothing_is_watched() {
        let manager = ServiceManager { socket: None, watchdog: Some(Duration::from_secs(1)) };
        manager.ready("http://127.0.0.1:1");
        assert!(manager.watch(|_| true).unwrap().is_none());
    }

    #[cfg(target_os = "linux")]
    #[test]
    fn name_with_an_at_sign_is_no_file() {
        let name = format!("@grid-batch-test-{}", process::id());
        let socket = UnixDatagram::bind_addr(&address(&name).unwrap()).unwrap();
        ServiceManager { socket: address(&name).ok(), watchdog: None }.stopping();
        assert!(received(&socket).contains("STOPPING=1"));
    }
}
