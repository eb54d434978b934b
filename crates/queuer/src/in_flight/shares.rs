use std::collections::HashMap;

use grid_batch_core::ServiceId;

/// How many places each service uses, and which services want more.
#[derive(Debug, Default)]
pub(super) struct Shares {
    services: HashMap<ServiceId, Use>,
    used: usize,
    /// How many services want more places.
    wanting: usize,
    /// How many places these use.
    used_by_wanting: usize,
}

#[derive(Debug, Default)]
struct Use {
    places: usize,
    wants_more: bool,
}

impl Shares {
    /// How many places are used.
    pub(super) fn used(&self) -> usize {
        self.used
    }

    /// How many places the service uses.
    pub(super) fn used_by(&self, service: &ServiceId) -> usize {
        self.services.get(service).map_or(0, |of_service| of_service.places)
    }

    /// How many places a service that wants more may use, of this many: what the others do not use, divided
    /// among those that want more, and at least one.
    pub(super) fn share(&self, places: usize) -> usize {
        let of_others = self.used - self.used_by_wanting;
        (places.saturating_sub(of_others) / self.wanting.max(1)).max(1)
    }

    pub(super) fn add(&mut self, service: &ServiceId, places: usize) {
        self.change(service, |of_service| of_service.places += places);
    }

    pub(super) fn remove(&mut self, service: &ServiceId, places: usize) {
        self.change(service, |of_service| {
            of_service.places = of_service.places.saturating_sub(places);
        });
    }

    pub(super) fn set_wants_more(&mut self, service: &ServiceId, wants_more: bool) {
        self.change(service, |of_service| of_service.wants_more = wants_more);
    }

    /// Changes what is known of a service, and the sums.
    fn change(&mut self, service: &ServiceId, change: impl FnOnce(&mut Use)) {
        let mut of_service = self.services.remove(service).unwrap_or_default();
        self.used -= of_service.places;
        if of_service.wants_more {
            self.wanting -= 1;
            self.used_by_wanting -= of_service.places;
        }
        change(&mut of_service);
        self.used += of_service.places;
        if of_service.wants_more {
            self.wanting += 1;
            self.used_by_wanting += of_service.places;
        }
        if of_service.places > 0 || of_service.wants_more {
            self.services.insert(service.clone(), of_service);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn service(name: &str) -> ServiceId {
        name.parse().unwrap()
    }

    #[test]
    fn share_is_what_the_others_leave() {
        let mut shares = Shares::default();
        assert_eq!(shares.share(100), 100);
        shares.set_wants_more(&service("a"), true);
        shares.set_wants_more(&service("b"), true);
        assert_eq!(shares.share(100), 50);
        shares.add(&service("a"), 80);
        assert_eq!(shares.share(100), 50, "what is used by one that wants more is divided, too");
        shares.set_wants_more(&service("a"), false);
        assert_eq!(shares.share(100), 20);
        shares.remove(&service("a"), 79);
        assert_eq!((shares.share(100), shares.used()), (99, 1));
    }

    #[test]
    fn share_is_at_least_one() {
        let mut shares = Shares::default();
        for name in ["a", "b", "c"] {
            shares.set_wants_more(&service(name), true);
        }
        assert_eq!(shares.share(2), 1);
    }

    #[test]
    fn service_without_places_is_forgotten() {
        let mut shares = Shares::default();
        shares.add(&service("a"), 1);
        shares.set_wants_more(&service("a"), true);
        shares.remove(&service("a"), 2);
        shares.set_wants_more(&service("a"), false);
        assert!(shares.services.is_empty());
        assert_eq!((shares.used(), shares.wanting, shares.used_by_wanting), (0, 0, 0));
    }
}
