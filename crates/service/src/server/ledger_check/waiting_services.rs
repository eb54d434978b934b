use std::{
    collections::HashSet,
    mem::take,
    sync::{Mutex, MutexGuard, PoisonError},
};

/// The services whose statuses could not be read. They are polled when a node is back, because their
/// next poll may be much later.
#[derive(Default)]
pub(super) struct WaitingServices(Mutex<Waiting>);

#[derive(Default)]
struct Waiting {
    services: HashSet<String>,
    poll: Option<PollFn>,
}

/// Polls a service.
type PollFn = Box<dyn Fn(&str) + Send>;

impl WaitingServices {
    /// The greatest number of services. A further one is polled at its own pace.
    const MOST: usize = 10_000;

    /// Sets what polls a service.
    pub(super) fn on_return(&self, poll: impl Fn(&str) + Send + 'static) {
        self.lock().poll = Some(Box::new(poll));
    }

    pub(super) fn add(&self, service_id: &str) {
        let mut waiting = self.lock();
        if waiting.services.len() < Self::MOST {
            waiting.services.insert(service_id.to_owned());
        }
    }

    /// A node is back: polls the services.
    pub(super) fn poll(&self) {
        let mut waiting = self.lock();
        let services = take(&mut waiting.services);
        if let Some(poll) = &waiting.poll {
            services.iter().for_each(|service| poll(service));
        }
    }

    fn lock(&self) -> MutexGuard<'_, Waiting> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}
