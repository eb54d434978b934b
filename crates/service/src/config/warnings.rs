//! Warnings about secrets that other users can read.

use std::{
    collections::BTreeSet,
    fmt,
    path::{Path, PathBuf},
};

use grid_batch_settings::{GivenValue, Origin, Setting};
use log::warn;

use super::Config;
use crate::private_file::is_open_to_others;

/// A secret, or a database file, that other users of this machine can read.
#[derive(Debug, Clone)]
pub struct ReadableSecret {
    kind: Kind,
}

#[derive(Debug, Clone)]
enum Kind {
    File { file: PathBuf, what: &'static str },
    Flag { flag: String, setting: &'static Setting, file: Option<&'static Setting> },
}

impl fmt::Display for ReadableSecret {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match &self.kind {
            Kind::File { what, .. } => {
                write!(f, "other users can read {what}; restrict it with chmod 600")
            }
            Kind::Flag { setting, file, .. } => {
                let file = file.map(|file| format!("{} or ", file.name));
                write!(
                    f,
                    "every user of this machine can read the flag in the list of processes; set {}{}",
                    file.unwrap_or_default(),
                    setting.variable()
                )
            }
        }
    }
}

impl ReadableSecret {
    /// The file or the flag.
    pub fn name(&self) -> String {
        match &self.kind {
            Kind::File { file, .. } => file.display().to_string(),
            Kind::Flag { flag, .. } => format!("--{flag}"),
        }
    }

    fn warn(&self) {
        let name = self.name();
        match &self.kind {
            Kind::File { .. } => warn!(file = name.as_str(); "{self}"),
            Kind::Flag { .. } => warn!(flag = name.as_str(); "{self}"),
        }
    }
}

impl Config {
    /// Each file with a secret, and a database file, that other users can read, and each secret that was
    /// given as a flag.
    pub fn readable_secrets(&self) -> Vec<ReadableSecret> {
        let mut found = Found::default();
        let table = self.settings.table();
        for given in table.iter().map(|setting| self.settings.given(setting.name)) {
            let is_secret = given.setting.redact(&given.text) != given.text;
            if let Some(file) = self.file_of_setting(given) {
                found.add_file(Path::new(file), "the file of a setting");
            } else if is_secret {
                found.add_origin(given, table.file_of(given.setting));
            }
        }
        if let Some(file) = self.database.file() {
            found.add_file(file, "the database file");
        }
        found.secrets
    }

    /// Warns of the [`readable_secrets`](Self::readable_secrets).
    pub fn warn_of_readable_secrets(&self) {
        self.readable_secrets().iter().for_each(ReadableSecret::warn);
    }

    /// The file that the value was read from, if it has a file of its own for its secrets.
    fn file_of_setting(&self, given: &GivenValue) -> Option<&str> {
        let file = self
            .settings
            .table()
            .file_of(given.setting)
            .filter(|_| given.setting.may_hold_secret)?;
        Some(self.settings.given(file.name).text.as_str()).filter(|file| !file.is_empty())
    }
}

#[derive(Default)]
struct Found {
    secrets: Vec<ReadableSecret>,
    files: BTreeSet<PathBuf>,
}

impl Found {
    fn add_origin(&mut self, given: &GivenValue, file_setting: Option<&'static Setting>) {
        match &given.origin {
            Origin::File { file, .. } => self.add_file(file, "the configuration file"),
            Origin::Flag(flag) => {
                let (flag, setting) = (flag.to_string(), given.setting);
                let kind = Kind::Flag { flag, setting, file: file_setting };
                self.secrets.push(ReadableSecret { kind });
            }
            Origin::Default | Origin::Variable(_) => {}
        }
    }

    fn add_file(&mut self, file: &Path, what: &'static str) {
        if is_open_to_others(file) && self.files.insert(file.to_owned()) {
            let kind = Kind::File { file: file.to_owned(), what };
            self.secrets.push(ReadableSecret { kind });
        }
    }
}
