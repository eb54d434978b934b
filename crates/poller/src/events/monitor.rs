use std::{collections::HashMap, fmt, sync::Arc};

use grid_batch_core::ledger::Ledger;
use grid_batch_nodes::NodePool;
use grid_batch_support::{Job, Jobs, Shutdown};
use tokio::task::{AbortHandle, JoinSet};

use crate::{
    EventFollower, EventOptions, MonitorOptionsError, PollTrigger,
    events::follower::FollowedService, events::listener::ServiceEventListener,
};

/// An event monitor that is configured and not running.
///
/// It listens to the services that its [`EventFollower`] follows. A service is polled at each event. It is also polled
/// each time its stream is connected, because earlier events were missed.
pub struct EventMonitor {
    events: Arc<dyn Ledger>,
    trigger: PollTrigger,
    options: EventOptions,
    follower: EventFollower,
    nodes: NodePool,
}

impl EventMonitor {
    /// A monitor that polls services with `trigger` at these events.
    pub fn new(
        events: Arc<dyn Ledger>,
        trigger: PollTrigger,
        options: EventOptions,
    ) -> Result<Self, MonitorOptionsError> {
        options.check()?;
        let follower = EventFollower::new(&options);
        Ok(Self { events, trigger, options, follower, nodes: NodePool::default() })
    }

    /// Sets the nodes of the services. They must confirm their ledger again when an event stream breaks.
    #[must_use]
    pub fn with_nodes(mut self, nodes: NodePool) -> Self {
        self.nodes = nodes;
        self
    }

    /// The follower, which selects the services to listen to.
    pub fn follower(&self) -> EventFollower {
        self.follower.clone()
    }

    /// Starts the monitor. [`Job::join`] stops it, and returns it ready to run again: it still follows the same
    /// services.
    pub fn run(self, jobs: &Jobs) -> Job<Self> {
        let shutdown = Shutdown::new();
        let requested = shutdown.clone();
        jobs.spawn_until("events", shutdown, async move {
            self.listen(&requested).await;
            self
        })
    }

    async fn listen(&self, shutdown: &Shutdown) {
        let mut listeners = ListenerTasks::default();
        // This includes changes before this call; `update` ignores services that already have a listener.
        for service in self.follower.followed_services() {
            listeners.start(self.listener(service));
        }
        while !shutdown.is_requested() {
            for (service_id, followed) in self.follower.take_changed() {
                listeners.update(&service_id, followed.map(|service| self.listener(service)));
            }
            tokio::select! {
                () = shutdown.requested() => {}
                () = self.follower.changed() => {}
            }
        }
        listeners.tasks.shutdown().await;
        self.follower.set_none_live();
    }

    fn listener(&self, service: FollowedService) -> ServiceEventListener {
        ServiceEventListener {
            events: Arc::clone(&self.events),
            service,
            follower: self.follower.clone(),
            trigger: self.trigger.clone(),
            options: self.options.clone(),
            nodes: self.nodes.clone(),
        }
    }
}

/// One task for each service that is listened to.
#[derive(Default)]
struct ListenerTasks {
    tasks: JoinSet<()>,
    handles: HashMap<String, (FollowedService, AbortHandle)>,
}

impl ListenerTasks {
    /// Replaces the listener of the service. `None`: the service is no longer followed.
    fn update(&mut self, service_id: &str, listener: Option<ServiceEventListener>) {
        let known = self.handles.get(service_id).map(|(service, _)| service);
        if known == listener.as_ref().map(|listener| &listener.service) {
            return;
        }
        if let Some((_, handle)) = self.handles.remove(service_id) {
            handle.abort();
        }
        while self.tasks.try_join_next().is_some() {}
        if let Some(listener) = listener {
            self.start(listener);
        }
    }

    fn start(&mut self, listener: ServiceEventListener) {
        let service = listener.service.clone();
        let handle = self.tasks.spawn(listener.run());
        self.handles.insert(service.service_id.clone(), (service, handle));
    }
}

impl fmt::Debug for EventMonitor {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("EventMonitor").field("options", &self.options).finish_non_exhaustive()
    }
}
