use std::{
    collections::{BTreeSet, HashMap},
    time::Duration,
};

use grid_batch_core::{Timestamp, UnresolvedBatch};

/// When which batches are worth a look for evidence.
///
/// All of it is a matter of sparing the store and the ledger: what is forgotten is looked at when
/// its batch is asked for the next time.
#[derive(Debug)]
pub(crate) struct Agenda {
    /// A ledger's word that does not end a batch is no reason for doubt yet: the batches of a
    /// service that have one are looked at no sooner than this.
    services: NotBefore<String>,
    /// Batches that are looked at no sooner than this.
    batches: NotBefore<BatchKey>,
    /// Batches that are looked at then, whether they are asked for or not.
    appointments: BTreeSet<(Timestamp, BatchKey)>,
    /// Between looks at the batches of a service.
    pause: Duration,
}

/// A service and a batch.
pub(crate) type BatchKey = (String, String);

/// So many batches have an appointment.
const APPOINTMENTS: usize = 10_000;

impl Agenda {
    /// An agenda that looks at what a ledger says `pending` of with this pause, and remembers longer
    /// than batches wait to be asked for.
    pub(crate) fn new(pause: Duration, longest_interval: Duration) -> Self {
        let keep = longest_interval.saturating_mul(2).saturating_add(pause);
        Self {
            services: NotBefore::new(keep),
            batches: NotBefore::new(keep),
            appointments: BTreeSet::new(),
            pause,
        }
    }

    /// Which batches of an answer are worth a look: those it said nothing of, and from time to time
    /// the others.
    pub(crate) fn suspects(
        &mut self,
        service_id: &str,
        unknown: &[String],
        said: impl Iterator<Item = String>,
        now: Timestamp,
    ) -> Vec<String> {
        let said = if self.is_turn_of(service_id, now) { Some(said) } else { None };
        let all = unknown.iter().cloned().chain(said.into_iter().flatten());
        let is_due = |id: &String| {
            let key = (service_id.to_owned(), id.clone());
            self.batches.get(&key).is_none_or(|not_before| not_before <= now)
        };
        all.filter(is_due).collect()
    }

    /// Most batches end soon: a service has its first turn after a pause.
    fn is_turn_of(&mut self, service_id: &str, now: Timestamp) -> bool {
        let not_before = self.services.get(service_id);
        let is_turn = not_before.is_some_and(|not_before| not_before <= now);
        if is_turn || not_before.is_none() {
            self.services.set(service_id.to_owned(), now.plus(self.pause), now);
        }
        is_turn
    }

    /// Does not look at this batch before then.
    pub(crate) fn put_off(&mut self, doubt: &UnresolvedBatch, until: Timestamp, now: Timestamp) {
        self.batches.set(key(doubt), until, now);
    }

    /// Looks at this batch then.
    pub(crate) fn appoint(&mut self, doubt: &UnresolvedBatch, at: Timestamp) {
        if self.appointments.len() < APPOINTMENTS {
            self.appointments.insert((at, key(doubt)));
        }
    }

    /// Takes the batches whose time has come, by service.
    pub(crate) fn take_appointed(&mut self, now: Timestamp) -> Vec<(String, Vec<String>)> {
        let mut by_service: HashMap<String, Vec<String>> = HashMap::new();
        while let Some((at, _)) = self.appointments.first()
            && *at <= now
            && let Some((_, (service, batch))) = self.appointments.pop_first()
        {
            by_service.entry(service).or_default().push(batch);
        }
        by_service.into_iter().collect()
    }

    pub(crate) fn next_appointment(&self) -> Option<Timestamp> {
        self.appointments.first().map(|(at, _)| *at)
    }
}

fn key(doubt: &UnresolvedBatch) -> BatchKey {
    (doubt.service_id.to_string(), doubt.batch_id.to_string())
}

/// Times that are forgotten some time after they have passed.
#[derive(Debug)]
struct NotBefore<K> {
    times: HashMap<K, Timestamp>,
    keep: Duration,
    /// When there are so many, it is time to forget.
    many: usize,
}

impl<K: std::hash::Hash + Eq> NotBefore<K> {
    const FEW: usize = 1_000;

    fn new(keep: Duration) -> Self {
        Self { times: HashMap::new(), keep, many: Self::FEW }
    }

    fn get<Q>(&self, key: &Q) -> Option<Timestamp>
    where
        K: std::borrow::Borrow<Q>,
        Q: std::hash::Hash + Eq + ?Sized,
    {
        self.times.get(key).copied()
    }

    fn set(&mut self, key: K, at: Timestamp, now: Timestamp) {
        self.times.insert(key, at);
        if self.times.len() >= self.many {
            self.times.retain(|_, at| now.since(*at) < self.keep);
            self.many = self.times.len().saturating_mul(2).max(Self::FEW);
        }
    }
}

#[cfg(test)]
mod tests {
    use grid_batch_core::{AttemptId, BatchState, HeaderId};

    use super::*;

    const SECOND: Duration = Duration::from_secs(1);

    fn at(seconds: u32) -> Timestamp {
        Timestamp::default().plus(SECOND * seconds)
    }

    fn doubt(number: u8) -> UnresolvedBatch {
        UnresolvedBatch {
            service_id: "s".parse().unwrap(),
            batch_id: HeaderId::from_bytes([number; 64]),
            transaction_ids: Vec::new(),
            attempt_id: AttemptId { attempt: 1, epoch: 1 },
            state: BatchState::InDoubt,
            submitted_at: at(0),
            since: at(0),
            held: false,
        }
    }

    fn agenda() -> Agenda {
        Agenda::new(SECOND * 15, SECOND * 60)
    }

    fn suspects(agenda: &mut Agenda, unknown: &[&str], said: &[&str], now: u32) -> Vec<String> {
        let unknown: Vec<String> = unknown.iter().map(ToString::to_string).collect();
        agenda.suspects("s", &unknown, said.iter().map(ToString::to_string), at(now))
    }

    #[test]
    fn what_nothing_is_said_of_is_suspect_at_once_and_the_rest_from_time_to_time() {
        let mut agenda = agenda();
        assert_eq!(suspects(&mut agenda, &["a"], &["b"], 0), ["a"]);
        assert_eq!(suspects(&mut agenda, &["a"], &["b"], 14), ["a"]);
        assert_eq!(suspects(&mut agenda, &["a"], &["b"], 15), ["a", "b"]);
        assert_eq!(suspects(&mut agenda, &[], &["b"], 16), [""; 0]);
        assert_eq!(suspects(&mut agenda, &[], &["b"], 600), ["b"]);
    }

    #[test]
    fn what_was_put_off_is_not_suspect_before() {
        let mut agenda = agenda();
        let id = doubt(1).batch_id.to_string();
        agenda.put_off(&doubt(1), at(10), at(0));
        assert_eq!(suspects(&mut agenda, &[&id], &[], 9), [""; 0]);
        assert_eq!(suspects(&mut agenda, &[&id], &[], 10), [id.as_str()]);
    }

    #[test]
    fn an_appointment_is_kept_once() {
        let mut agenda = agenda();
        agenda.appoint(&doubt(2), at(30));
        agenda.appoint(&doubt(1), at(20));
        assert_eq!(agenda.next_appointment(), Some(at(20)));
        assert_eq!(agenda.take_appointed(at(19)), []);
        let both = vec![doubt(1).batch_id.to_string(), doubt(2).batch_id.to_string()];
        assert_eq!(agenda.take_appointed(at(30)), [("s".to_owned(), both)]);
        assert_eq!(agenda.take_appointed(at(30)), []);
    }

    #[test]
    fn what_has_passed_long_ago_is_forgotten() {
        let mut times = NotBefore::new(SECOND * 60);
        for number in 0..100_000u32 {
            times.set(number, at(number / 1_000), at(number / 1_000));
        }
        assert!(times.times.len() <= 200_000);
        for number in 0..100_000u32 {
            times.set(number + 1_000_000, at(1_000), at(1_000));
        }
        assert!(times.times.len() <= 100_000, "{}", times.times.len());
    }
}
