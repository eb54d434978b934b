use std::{
    collections::BTreeSet,
    sync::mpsc::{Receiver, RecvTimeoutError, Sender, channel},
    time::Duration,
};

use grid_batch_core::ServiceId;
use grid_batch_core::events::{Recorded, RecordedSubscriber};

/// Asks a [`ClaimMaintainer`](crate::ClaimMaintainer) to claim services. Cheap to clone.
#[derive(Debug, Clone)]
pub struct ClaimRequests(Sender<Request>);

/// The receiving end of [`ClaimRequests`].
#[derive(Debug)]
pub struct ReceivedClaimRequests(pub(crate) Receiver<Request>);

impl ClaimRequests {
    /// Returns both ends. Requests may be sent before the maintainer has started.
    pub fn new() -> (Self, ReceivedClaimRequests) {
        let (sender, receiver) = channel();
        (Self(sender), ReceivedClaimRequests(receiver))
    }

    /// Claims those of these services that no live instance owns, without waiting for the next
    /// renewal. Call it for services whose batches were just stored.
    ///
    /// Does nothing after the maintainer has stopped.
    pub fn claim(&self, services: &[ServiceId]) {
        self.send(Request::Claim(services.to_vec()));
    }

    /// Takes no more services, but still renews the lease. A shutdown calls it to finish the submissions in flight.
    pub fn stop_taking(&self) {
        self.send(Request::StopTaking);
    }

    pub(crate) fn send(&self, request: Request) {
        // An error means that the maintainer's thread has ended.
        let _ = self.0.send(request);
    }
}

/// Requests the services of new batches. Batches that another instance has stored are ignored: that instance claims
/// their services.
impl RecordedSubscriber for ClaimRequests {
    fn recorded(&self, entry: Recorded<'_>) {
        if let Recorded::Stored(services) = entry {
            self.claim(services);
        }
    }
}

/// A message to the maintainer's thread.
#[derive(Debug)]
pub(crate) enum Request {
    Claim(Vec<ServiceId>),
    StopTaking,
    End,
}

/// Requests that have arrived and have not been handled yet.
#[derive(Debug, Default, PartialEq, Eq)]
pub(crate) struct PendingRequests {
    pub(crate) services: BTreeSet<ServiceId>,
    pub(crate) stop_taking: bool,
    pub(crate) end: bool,
}

impl PendingRequests {
    /// Waits up to `timeout` for a request, and adds all that have arrived by then.
    pub(crate) fn receive(&mut self, requests: &Receiver<Request>, timeout: Duration) {
        let first = match requests.recv_timeout(timeout) {
            Ok(request) => Some(request),
            Err(RecvTimeoutError::Timeout) => None,
            Err(RecvTimeoutError::Disconnected) => Some(Request::End),
        };
        for request in first.into_iter().chain(requests.try_iter()) {
            match request {
                Request::Claim(services) => self.services.extend(services),
                Request::StopTaking => self.stop_taking = true,
                Request::End => self.end = true,
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn service(name: &str) -> ServiceId {
        name.parse().unwrap()
    }

    fn receive(requests: &Receiver<Request>, timeout: Duration) -> PendingRequests {
        let mut pending = PendingRequests::default();
        pending.receive(requests, timeout);
        pending
    }

    #[test]
    fn requests_are_merged() {
        let (sender, requests) = channel();
        let claim = |names: &[&str]| Request::Claim(names.iter().map(|n| service(n)).collect());
        for request in [claim(&["b", "a"]), Request::End, claim(&["a"])] {
            sender.send(request).unwrap();
        }
        let pending = receive(&requests, Duration::ZERO);
        let services = [service("a"), service("b")].into();
        assert_eq!(pending, PendingRequests { services, stop_taking: false, end: true });
    }

    #[test]
    fn services_of_stored_batches_are_requested() {
        let (requests, ReceivedClaimRequests(received)) = ClaimRequests::new();
        requests.recorded(Recorded::Submittable(&[service("a")]));
        requests.recorded(Recorded::Stored(&[service("b")]));
        assert_eq!(receive(&received, Duration::ZERO).services, [service("b")].into());
    }

    #[test]
    fn dropped_sender_is_a_request_to_end() {
        let (sender, requests) = channel();
        assert_eq!(receive(&requests, Duration::ZERO), PendingRequests::default());
        drop(sender);
        assert!(receive(&requests, Duration::from_secs(60)).end);
    }
}
