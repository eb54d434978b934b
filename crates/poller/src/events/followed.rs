use std::{
    collections::HashMap,
    sync::{Arc, Mutex, MutexGuard, PoisonError},
    time::Duration,
};

use grid_batch_core::{EventSubscriptions, ServiceId};
use log::debug;
use tokio::{sync::Notify, time::Instant};

use crate::{EventOptions, looks::after};

/// Says which services an event monitor is to listen to, and whether it does.
///
/// It may be told before the monitor runs. Cheap to clone.
#[derive(Debug, Clone)]
pub struct EventFollower(Arc<Shared>);

#[derive(Debug)]
struct Shared {
    followed: Mutex<Followed>,
    changed: Notify,
}

#[derive(Debug)]
struct Followed {
    services: HashMap<String, Socket>,
    sockets: usize,
    /// Counts up, to tell which came first.
    count: u64,
    crowded_for: Duration,
    crowded_until: Option<Instant>,
}

#[derive(Debug)]
struct Socket {
    /// When it was first asked for: a service that was let go in between is another.
    number: u64,
    /// When it was last asked for.
    last: u64,
    live: bool,
}

/// A service that is to be listened to, from when it was asked for until it is let go.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub(crate) struct Following {
    pub(crate) service_id: String,
    number: u64,
}

impl Following {
    /// Another for each service.
    pub(crate) fn number(&self) -> u64 {
        self.number
    }
}

impl EventSubscriptions for EventFollower {
    fn follow(&self, service_id: &ServiceId) {
        Self::follow(self, service_id.as_str());
    }
}

impl EventFollower {
    pub(crate) fn new(options: &EventOptions) -> Self {
        Self(Arc::new(Shared {
            followed: Mutex::new(Followed {
                services: HashMap::new(),
                sockets: options.sockets,
                count: 0,
                crowded_for: options.crowded_for,
                crowded_until: None,
            }),
            changed: Notify::new(),
        }))
    }

    /// Has this service listened to. To be called whenever a batch of it is on its way: without a
    /// socket left, the service that this was called for longest ago is let go.
    pub fn follow(&self, service_id: &str) {
        if self.followed().follow(service_id) {
            self.0.changed.notify_one();
        }
    }

    /// Whether events of this service arrive.
    pub fn is_live(&self, service_id: &str) -> bool {
        self.followed().services.get(service_id).is_some_and(|socket| socket.live)
    }

    /// Whether events can be relied on: some service is followed, events of each that is arrive, and
    /// none had to be let go of late.
    pub fn all_live(&self) -> bool {
        let followed = self.followed();
        let crowded = followed.crowded_until.is_some_and(|until| Instant::now() < until);
        !crowded
            && !followed.services.is_empty()
            && followed.services.values().all(|socket| socket.live)
    }

    /// Waits until other services are to be listened to.
    pub(crate) async fn changed(&self) {
        self.0.changed.notified().await;
    }

    pub(crate) fn followings(&self) -> Vec<Following> {
        let following = |(service_id, socket): (&String, &Socket)| Following {
            service_id: service_id.clone(),
            number: socket.number,
        };
        self.followed().services.iter().map(following).collect()
    }

    pub(crate) fn set_live(&self, following: &Following, live: bool) {
        if let Some(socket) = self.followed().services.get_mut(&following.service_id)
            && socket.number == following.number
        {
            socket.live = live;
        }
    }

    /// The monitor does not run any more.
    pub(crate) fn none_is_live(&self) {
        self.followed().services.values_mut().for_each(|socket| socket.live = false);
    }

    fn followed(&self) -> MutexGuard<'_, Followed> {
        self.0.followed.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Followed {
    /// Whether anything changes.
    fn follow(&mut self, service_id: &str) -> bool {
        self.count += 1;
        if let Some(socket) = self.services.get_mut(service_id) {
            socket.last = self.count;
            return false;
        }
        if self.services.len() >= self.sockets {
            self.let_one_go();
        }
        let socket = Socket { number: self.count, last: self.count, live: false };
        self.services.insert(service_id.to_owned(), socket);
        true
    }

    fn let_one_go(&mut self) {
        let longest_ago = self.services.iter().min_by_key(|(_, socket)| socket.last);
        let Some(service_id) = longest_ago.map(|(service_id, _)| service_id.clone()) else {
            return;
        };
        debug!(service = service_id.as_str(); "no socket is left; a service is let go");
        self.services.remove(&service_id);
        self.crowded_until = Some(after(Instant::now(), self.crowded_for));
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn follower(sockets: usize) -> EventFollower {
        EventFollower::new(&EventOptions { sockets, ..EventOptions::default() })
    }

    fn services(follower: &EventFollower) -> Vec<String> {
        let mut services: Vec<_> =
            follower.followings().into_iter().map(|following| following.service_id).collect();
        services.sort();
        services
    }

    fn all_answer(follower: &EventFollower) {
        follower.followings().iter().for_each(|following| follower.set_live(following, true));
    }

    #[test]
    fn events_are_relied_on_when_there_are_some_and_all_are_live() {
        let follower = follower(2);
        assert!(!follower.all_live(), "nothing is followed");
        follower.follow("a");
        assert!(!follower.all_live());
        all_answer(&follower);
        assert!(follower.all_live() && follower.is_live("a"));
        follower.follow("a");
        assert!(follower.all_live(), "it is followed already");
        follower.follow("b");
        assert!(!follower.all_live() && !follower.is_live("b"));
        all_answer(&follower);
        follower.none_is_live();
        assert!(!follower.is_live("a"));
    }

    #[tokio::test(start_paused = true)]
    async fn without_a_socket_the_service_followed_longest_ago_is_let_go_and_polling_is_primary() {
        let follower = follower(2);
        ["a", "b", "a", "c"].into_iter().for_each(|service| follower.follow(service));
        assert_eq!(services(&follower), ["a", "c"]);
        all_answer(&follower);
        assert!(!follower.all_live(), "b was turned away");
        tokio::time::advance(EventOptions::default().crowded_for).await;
        assert!(follower.all_live());
    }

    #[test]
    fn what_an_earlier_socket_says_of_itself_does_not_count() {
        let follower = follower(1);
        follower.follow("a");
        let earlier = follower.followings().remove(0);
        ["b", "a"].into_iter().for_each(|service| follower.follow(service));
        follower.set_live(&earlier, true);
        assert!(!follower.is_live("a"));
    }
}
