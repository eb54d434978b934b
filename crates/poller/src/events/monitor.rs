use std::{collections::HashMap, fmt, sync::Arc};

use grid_batch_core::{InternalError, LedgerEvents, ShutdownHandle};
use tokio::task::{AbortHandle, JoinSet};

use crate::{
    EventFollower, EventOptions, MonitorOptionsError, PollTrigger,
    ending::Ending,
    events::{followed::Following, listener::Listener},
    runtime,
    thread::RuntimeThread,
};

/// An event monitor that is configured and not running.
///
/// It listens to the services that its [`EventFollower`] is told to follow. A service is polled at
/// each event, and whenever it could be listened to (again), since events were missed before.
pub struct EventMonitor {
    events: Arc<dyn LedgerEvents>,
    trigger: PollTrigger,
    options: EventOptions,
    follower: EventFollower,
}

/// An event monitor at work: the handle to stop it by.
///
/// Dropping it ends it too, and does not wait for that.
pub struct RunningEventMonitor {
    /// There until someone waits for it.
    thread: Option<RuntimeThread<EventMonitor>>,
    ending: Ending,
    follower: EventFollower,
}

impl EventMonitor {
    /// A monitor of these events, which has services polled by this trigger.
    pub fn new(
        events: Arc<dyn LedgerEvents>,
        trigger: PollTrigger,
        options: EventOptions,
    ) -> Result<Self, MonitorOptionsError> {
        options.check()?;
        let follower = EventFollower::new(&options);
        Ok(Self { events, trigger, options, follower })
    }

    /// Says which services to listen to, and whether events of them arrive.
    pub fn follower(&self) -> EventFollower {
        self.follower.clone()
    }

    /// Starts it.
    pub fn run(self) -> Result<RunningEventMonitor, InternalError> {
        let (ending, follower) = (Ending::new(), self.follower());
        let listens_until = ending.clone();
        let thread = RuntimeThread::start("poll-events", runtime::for_events, move |runtime| {
            runtime.block_on(self.listen(&listens_until));
            runtime::end(runtime);
            self
        })?;
        Ok(RunningEventMonitor { thread: Some(thread), ending, follower })
    }

    async fn listen(&self, ending: &Ending) {
        let mut listeners = Listeners::default();
        while !ending.has_begun() {
            listeners.follow(self.follower.followings(), |following| self.listener(following));
            tokio::select! {
                () = ending.begun() => {}
                () = self.follower.changed() => {}
            }
        }
        listeners.tasks.shutdown().await;
        self.follower.none_is_live();
    }

    fn listener(&self, following: Following) -> Listener {
        Listener {
            events: Arc::clone(&self.events),
            following,
            follower: self.follower.clone(),
            trigger: self.trigger.clone(),
            options: self.options.clone(),
        }
    }
}

/// A task for each service that is listened to.
#[derive(Default)]
struct Listeners {
    tasks: JoinSet<()>,
    handles: HashMap<Following, AbortHandle>,
}

impl Listeners {
    /// Ends the tasks of services that were let go, and begins those of the others.
    fn follow(&mut self, followings: Vec<Following>, listener: impl Fn(Following) -> Listener) {
        self.handles.retain(|following, handle| {
            let stays = followings.contains(following);
            if !stays {
                handle.abort();
            }
            stays
        });
        while self.tasks.try_join_next().is_some() {}
        for following in followings {
            self.handles
                .entry(following)
                .or_insert_with_key(|key| self.tasks.spawn(listener(key.clone()).run()));
        }
    }
}

impl RunningEventMonitor {
    /// Says which services to listen to, and whether events of them arrive.
    pub fn follower(&self) -> EventFollower {
        self.follower.clone()
    }

    /// Stops it, and gives back what can be started again. It remembers whom it followed.
    pub fn stop(mut self) -> Result<EventMonitor, InternalError> {
        self.wind_down()
    }

    fn wind_down(&mut self) -> Result<EventMonitor, InternalError> {
        self.ending.begin();
        let ended = || InternalError::new("the event monitor has ended already");
        self.thread.take().ok_or_else(ended)?.join()
    }
}

impl ShutdownHandle for RunningEventMonitor {
    fn signal_shutdown(&mut self) -> Result<(), InternalError> {
        self.ending.begin();
        Ok(())
    }

    /// Waits until it has ended; without a signal before, it is given now.
    fn wait_for_shutdown(mut self) -> Result<(), InternalError> {
        self.wind_down().map(drop)
    }
}

impl Drop for RunningEventMonitor {
    fn drop(&mut self) {
        self.ending.begin();
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
