use std::sync::{Mutex, MutexGuard, PoisonError};

/// What this process knows that its database has. A database that has less went back to an earlier
/// state.
#[derive(Debug, Default)]
pub(crate) struct LastSeen(Mutex<Seen>);

/// Numbers that the database had after a commit of this process.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(crate) struct Seen {
    /// The instance of this process, and how often it has renewed.
    pub(crate) instance: Option<(String, i64)>,
    /// How often any instance has registered.
    pub(crate) registrations: i64,
    /// When the database was last restored.
    pub(crate) restored_at: Option<i64>,
}

impl LastSeen {
    pub(crate) fn get(&self) -> Seen {
        self.lock().clone()
    }

    /// The database was found in this state, and what was lost is dealt with.
    pub(crate) fn found(&self, found: Seen) {
        let mut seen = self.lock();
        seen.registrations = found.registrations;
        seen.restored_at = found.restored_at;
        match (&mut seen.instance, found.instance) {
            (Some((id, known)), Some((other, renewals))) if *id == other => *known = renewals,
            _ => {}
        }
    }

    /// This process has registered as an instance.
    pub(crate) fn registered(&self, instance: &str, registrations: i64) {
        let mut seen = self.lock();
        seen.instance = Some((instance.to_owned(), 0));
        seen.registrations = registrations;
    }

    /// The instance has renewed so many times.
    pub(crate) fn renewed(&self, instance: &str, renewals: i64) {
        match &mut self.lock().instance {
            Some((id, known)) if id == instance => *known = renewals,
            _ => {}
        }
    }

    fn lock(&self) -> MutexGuard<'_, Seen> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}
