//! The directory of a demonstration, from which it can be continued.

use std::{
    fmt::Display,
    fs,
    io::{self, Write},
    os::unix::fs::OpenOptionsExt,
    path::{Path, PathBuf},
};

use serde::{Deserialize, Serialize};
use tempfile::TempDir;

use crate::{DemoError, DemoOptions};

/// The options that must not change when a demonstration is continued.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct DemoPlan {
    pub(crate) ledger: String,
    pub(crate) services: usize,
    pub(crate) strategy: String,
    pub(crate) seed: u64,
    /// The number of batches to send, over all runs.
    pub(crate) batches: usize,
    /// Whether the last run was completed.
    pub(crate) done: bool,
}

/// The directory of a demonstration.
#[derive(Debug)]
pub(crate) struct DemoDirectory {
    path: PathBuf,
    /// Removes the directory when it is dropped, unless it is kept.
    _temporary: Option<TempDir>,
}

impl DemoDirectory {
    pub(crate) fn open(keep: Option<&Path>) -> Result<Self, DemoError> {
        match keep {
            Some(path) => {
                fs::create_dir_all(path).map_err(|error| DemoError::file(path, error))?;
                Ok(Self { path: path.to_owned(), _temporary: None })
            }
            None => {
                let directory = TempDir::with_prefix("grid-batch-demo-")
                    .map_err(|error| DemoError::file(&std::env::temp_dir(), error))?;
                Ok(Self { path: directory.path().to_owned(), _temporary: Some(directory) })
            }
        }
    }

    pub(crate) fn database(&self) -> PathBuf {
        self.path.join("batches.db")
    }

    pub(crate) fn record(&self) -> PathBuf {
        self.path.join("ledger.jsonl")
    }

    fn plan_file(&self) -> PathBuf {
        self.path.join("demo.json")
    }

    /// Writes the server's key file. The simulated ledger accepts any key.
    pub(crate) fn write_key(&self, seed: u64) -> Result<PathBuf, DemoError> {
        let path = self.path.join("key");
        write_private(&path, &format!("{:064x}", seed | 1))?;
        Ok(path)
    }

    /// A new plan, or the kept one. After a completed run, the same number of batches is sent again.
    pub(crate) fn plan(&self, options: &DemoOptions, seed: u64) -> Result<DemoPlan, DemoError> {
        let new = DemoPlan {
            ledger: options.ledger.as_str().to_owned(),
            services: options.services,
            strategy: options.strategy.as_str().to_owned(),
            seed,
            batches: options.batches,
            done: false,
        };
        let plan = match self.read_plan()? {
            None => new,
            Some(kept) => kept.continue_with(&new, options)?,
        };
        self.write(&plan)?;
        Ok(plan)
    }

    fn read_plan(&self) -> Result<Option<DemoPlan>, DemoError> {
        let path = self.plan_file();
        match fs::read(&path) {
            Ok(bytes) => serde_json::from_slice(&bytes)
                .map(Some)
                .map_err(|error| DemoError::file(&path, error)),
            Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(None),
            Err(error) => Err(DemoError::file(&path, error)),
        }
    }

    /// Replaces the plan atomically: a killed demonstration leaves the old plan or the new one.
    pub(crate) fn write(&self, plan: &DemoPlan) -> Result<(), DemoError> {
        let path = self.plan_file();
        let new = path.with_extension("new");
        let json = serde_json::to_vec(plan).map_err(DemoError::internal)?;
        fs::write(&new, json)
            .and_then(|()| fs::rename(&new, &path))
            .map_err(|error| DemoError::file(&path, error))
    }
}

/// Writes a file that only its owner can read.
pub(crate) fn write_private(path: &Path, text: &str) -> Result<(), DemoError> {
    let mut options = fs::OpenOptions::new();
    let opened = options.write(true).create(true).truncate(true).mode(0o600).open(path);
    opened
        .and_then(|mut file| file.write_all(text.as_bytes()))
        .map_err(|error| DemoError::file(path, error))
}

impl DemoPlan {
    fn continue_with(self, new: &Self, options: &DemoOptions) -> Result<Self, DemoError> {
        let has_seed = options.seed.is_none_or(|seed| seed == self.seed);
        let kept: [(&'static str, &dyn Display, bool); 4] = [
            ("ledger", &self.ledger, self.ledger == new.ledger),
            ("number of services", &self.services, self.services == new.services),
            ("strategy", &self.strategy, self.strategy == new.strategy),
            ("seed", &self.seed, has_seed),
        ];
        if let Some((option, kept, _)) = kept.into_iter().find(|(.., is_same)| !is_same) {
            return Err(DemoError::OtherOptions { option, kept: kept.to_string() });
        }
        let batches = if self.done { self.batches + new.batches } else { self.batches };
        Ok(Self { batches, done: false, ..self })
    }
}
