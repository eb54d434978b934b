use std::{collections::HashMap, fmt, sync::Arc, time::Duration};

use grid_batch_core::{InternalError, Ledger};
use grid_batch_nodes::NodePool;
use grid_batch_support::{RuntimeThread, Shutdown, shut_down_runtime};
use tokio::{
    runtime::Handle,
    task::{AbortHandle, JoinSet},
    time::{sleep, timeout},
};

use crate::{
    EventFollower, EventOptions, MonitorOptionsError, PollTrigger, ShutdownHandle,
    events::follower::FollowedService, events::listener::EventListener, runtime,
};

/// An event monitor that is configured and not running.
///
/// It listens to the services that its [`EventFollower`] follows. A service is polled at each event,
/// and each time its stream is connected, because earlier events were missed.
pub struct EventMonitor {
    events: Arc<dyn Ledger>,
    trigger: PollTrigger,
    options: EventOptions,
    follower: EventFollower,
    nodes: NodePool,
}

/// The handle of a running event monitor.
///
/// Dropping it requests a shutdown and does not wait for it.
pub struct RunningEventMonitor {
    /// `None` once the thread has been joined.
    thread: Option<RuntimeThread<EventMonitor>>,
    shutdown: Shutdown,
    follower: EventFollower,
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

    /// Starts the monitor.
    pub fn run(self) -> Result<RunningEventMonitor, InternalError> {
        let (shutdown, follower) = (Shutdown::new(), self.follower());
        let thread_shutdown = shutdown.clone();
        let thread = RuntimeThread::start("poll-events", runtime::for_events, move |runtime| {
            runtime.block_on(self.listen(&thread_shutdown));
            shut_down_runtime(runtime);
            self
        })?;
        Ok(RunningEventMonitor { thread: Some(thread), shutdown, follower })
    }

    async fn listen(&self, shutdown: &Shutdown) {
        let mut listeners = ListenerTasks::default();
        // Changes before this call are included; `update` ignores services that have their listener.
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
        close_connections().await;
    }

    fn listener(&self, service: FollowedService) -> EventListener {
        EventListener {
            events: Arc::clone(&self.events),
            service,
            follower: self.follower.clone(),
            trigger: self.trigger.clone(),
            options: self.options.clone(),
            nodes: self.nodes.clone(),
        }
    }
}

/// Waits a moment for the tasks in which dropped streams close their connections.
async fn close_connections() {
    const LIMIT: Duration = Duration::from_secs(1);
    const CHECK_INTERVAL: Duration = Duration::from_millis(5);
    let metrics = Handle::current().metrics();
    let closing = async {
        while metrics.num_alive_tasks() > 0 {
            sleep(CHECK_INTERVAL).await;
        }
    };
    // A server that does not answer is not waited for.
    let _ = timeout(LIMIT, closing).await;
}

/// One task for each service that is listened to.
#[derive(Default)]
struct ListenerTasks {
    tasks: JoinSet<()>,
    handles: HashMap<String, (FollowedService, AbortHandle)>,
}

impl ListenerTasks {
    /// Replaces the listener of the service. `None`: the service is not followed any more.
    fn update(&mut self, service_id: &str, listener: Option<EventListener>) {
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

    fn start(&mut self, listener: EventListener) {
        let service = listener.service.clone();
        let handle = self.tasks.spawn(listener.run());
        self.handles.insert(service.service_id.clone(), (service, handle));
    }
}

impl RunningEventMonitor {
    /// The follower, which selects the services to listen to.
    pub fn follower(&self) -> EventFollower {
        self.follower.clone()
    }

    /// Stops the monitor, and returns it ready to run again. It still follows the same services.
    pub fn stop(mut self) -> Result<EventMonitor, InternalError> {
        self.shut_down()
    }

    fn shut_down(&mut self) -> Result<EventMonitor, InternalError> {
        self.shutdown.request();
        let ended = || InternalError::new("the event monitor has already ended");
        self.thread.take().ok_or_else(ended)?.join()
    }
}

impl ShutdownHandle for RunningEventMonitor {
    fn signal_shutdown(&mut self) -> Result<(), InternalError> {
        self.shutdown.request();
        Ok(())
    }

    /// Requests the shutdown if nothing has yet, and waits until the monitor has ended.
    fn wait_for_shutdown(mut self) -> Result<(), InternalError> {
        self.shut_down().map(drop)
    }
}

impl Drop for RunningEventMonitor {
    fn drop(&mut self) {
        self.shutdown.request();
    }
}

impl fmt::Debug for EventMonitor {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("EventMonitor").field("options", &self.options).finish_non_exhaustive()
    }
}

impl fmt::Debug for RunningEventMonitor {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("RunningEventMonitor").finish_non_exhaustive()
    }
}
