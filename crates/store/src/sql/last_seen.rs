use std::sync::{Mutex, Weak};

use grid_batch_support::lock;

use super::file_lock::FileLock;

/// What this process has seen in its database. A database that has less went back to an earlier state.
#[derive(Debug, Default)]
pub(crate) struct LastSeen(Mutex<Memory>);

#[derive(Debug, Default)]
struct Memory {
    seen: Seen,
    /// The lock file beside the database, in which `seen` is also stored for the next process.
    file: Weak<FileLock>,
}

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
    /// Starts with what an earlier process has stored.
    pub(crate) fn starting_with(seen: Seen) -> Self {
        Self(Mutex::new(Memory { seen, file: Weak::new() }))
    }

    pub(crate) fn get(&self) -> Seen {
        lock(&self.0).seen.clone()
    }

    /// Also stores each change in the file from now on, as long as the file is locked.
    pub(crate) fn keep_in(&self, file: Weak<FileLock>) {
        lock(&self.0).file = file;
    }

    /// Records that the database was found in this state and any loss was handled.
    pub(crate) fn found(&self, found: Seen) {
        self.change(|seen| {
            seen.registrations = found.registrations;
            seen.restored_at = found.restored_at;
            match (&mut seen.instance, found.instance) {
                (Some((id, known)), Some((other, renewals))) if *id == other => *known = renewals,
                _ => {}
            }
        });
    }

    /// Records that this process has registered as an instance.
    pub(crate) fn registered(&self, instance: &str, registrations: i64) {
        self.change(|seen| {
            seen.instance = Some((instance.to_owned(), 0));
            seen.registrations = registrations;
        });
    }

    /// Records that the instance has renewed at least this many times. Commits may be reported in any order.
    pub(crate) fn renewed(&self, instance: &str, renewals: i64) {
        self.change(|seen| match &mut seen.instance {
            Some((id, known)) if id == instance => *known = renewals.max(*known),
            _ => {}
        });
    }

    fn change(&self, change: impl FnOnce(&mut Seen)) {
        let mut memory = lock(&self.0);
        let before = memory.seen.clone();
        change(&mut memory.seen);
        // This is done under the lock, so that an earlier state never overwrites a later one in the file.
        match memory.file.upgrade() {
            Some(file) if memory.seen != before => file.keep(&memory.seen),
            _ => {}
        }
    }
}
