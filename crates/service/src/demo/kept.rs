//! What a demonstration leaves behind, and goes on from.

use std::{
    fs, io,
    path::{Path, PathBuf},
};

use serde::{Deserialize, Serialize};

use crate::demo::{DemoError, DemoOptions};

/// What must stay the same when a demonstration goes on.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub(super) struct Plan {
    pub(super) ledger: String,
    pub(super) services: usize,
    pub(super) seed: u64,
    /// How many batches were to be handed in, over all starts.
    pub(super) batches: usize,
    /// The last start has come to its end.
    pub(super) done: bool,
}

/// The directory of a demonstration.
#[derive(Debug)]
pub(super) struct Place {
    dir: PathBuf,
    /// Where nothing is to be left: removed when dropped.
    _temporary: Option<tempfile::TempDir>,
}

impl Place {
    pub(super) fn open(keep: Option<&Path>) -> Result<Self, DemoError> {
        let place = match keep {
            Some(dir) => {
                fs::create_dir_all(dir).map_err(|error| DemoError::place(dir, &error))?;
                Self { dir: dir.to_owned(), _temporary: None }
            }
            None => {
                let dir = tempfile::Builder::new().prefix("grid-batch-demo-").tempdir();
                let dir = dir.map_err(|error| DemoError::place(&std::env::temp_dir(), &error))?;
                Self { dir: dir.path().to_owned(), _temporary: Some(dir) }
            }
        };
        Ok(place)
    }

    pub(super) fn database(&self) -> PathBuf {
        self.dir.join("batches.db")
    }

    pub(super) fn record(&self) -> PathBuf {
        self.dir.join("ledger.jsonl")
    }

    /// The file of the key that the service is known by: any key will do.
    pub(super) fn key(&self, seed: u64) -> Result<PathBuf, DemoError> {
        let file = self.dir.join("key");
        let mut options = fs::OpenOptions::new();
        options.write(true).create(true).truncate(true);
        #[cfg(unix)]
        std::os::unix::fs::OpenOptionsExt::mode(&mut options, 0o600);
        options
            .open(&file)
            .and_then(|mut open| {
                io::Write::write_all(&mut open, format!("{:064x}", seed | 1).as_bytes())
            })
            .map_err(|error| DemoError::place(&file, &error))?;
        Ok(file)
    }

    fn plan_file(&self) -> PathBuf {
        self.dir.join("demo.json")
    }

    /// The plan to go by: a new one, or the one that was left. One that was not finished is
    /// finished; one that was goes on with as many batches again.
    pub(super) fn plan(&self, options: &DemoOptions, seed: u64) -> Result<Plan, DemoError> {
        let fresh = Plan {
            ledger: options.ledger.as_str().to_owned(),
            services: options.services,
            seed,
            batches: options.batches,
            done: false,
        };
        let plan = match self.left()? {
            None => fresh,
            Some(left) => left.go_on(&fresh, options)?,
        };
        self.write(&plan)?;
        Ok(plan)
    }

    fn left(&self) -> Result<Option<Plan>, DemoError> {
        let file = self.plan_file();
        match fs::read(&file) {
            Ok(bytes) => serde_json::from_slice(&bytes)
                .map(Some)
                .map_err(|error| DemoError::place(&file, &error)),
            Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(None),
            Err(error) => Err(DemoError::place(&file, &error)),
        }
    }

    /// Replaces the plan as a whole, so that a kill leaves the old one or the new one.
    pub(super) fn write(&self, plan: &Plan) -> Result<(), DemoError> {
        let file = self.plan_file();
        let new = file.with_extension("new");
        let json = serde_json::to_vec(plan).map_err(DemoError::internal)?;
        fs::write(&new, json)
            .and_then(|()| fs::rename(&new, &file))
            .map_err(|error| DemoError::place(&file, &error))
    }
}

impl Plan {
    fn go_on(self, fresh: &Self, options: &DemoOptions) -> Result<Self, DemoError> {
        let differs = |what: &'static str, left: &dyn std::fmt::Display| DemoError::OtherPlan {
            what,
            left: left.to_string(),
        };
        if self.ledger != fresh.ledger {
            return Err(differs("ledger", &self.ledger));
        }
        if self.services != fresh.services {
            return Err(differs("services", &self.services));
        }
        if options.seed.is_some_and(|seed| seed != self.seed) {
            return Err(differs("seed", &self.seed));
        }
        let batches = if self.done { self.batches + fresh.batches } else { self.batches };
        Ok(Self { batches, done: false, ..self })
    }
}
