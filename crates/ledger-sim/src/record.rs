use std::{
    fs::{File, OpenOptions, TryLockError},
    io::{self, Read, Seek, SeekFrom, Write},
    path::{Path, PathBuf},
    sync::Arc,
};

use base64::{Engine, prelude::BASE64_STANDARD};
use grid_batch_core::{HeaderId, ServiceId, Timestamp};
use serde::{Deserialize, Serialize};
use thiserror::Error;

/// What a ledger did with one batch, once.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Entry {
    /// Its place among all that the ledger did, counted from 0.
    pub position: u64,
    /// The service that the batch was sent to; `global` on Sawtooth.
    pub service_id: ServiceId,
    /// The batch.
    pub batch_id: HeaderId,
    /// Its transactions, in order.
    pub transaction_ids: Vec<HeaderId>,
    /// When.
    pub time: Timestamp,
    /// What.
    pub verdict: Verdict,
    /// The bytes of the batch, where the ledger gives batches back: those Sawtooth committed.
    pub batch: Option<Arc<[u8]>>,
}

/// How an execution ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Verdict {
    /// The state was changed.
    Applied,
    /// The state was left alone.
    Invalid,
}

/// Why a record cannot be read or written.
#[derive(Debug, Error)]
pub enum RecordError {
    /// The file system said no.
    #[error("cannot use the record {path}")]
    Io {
        /// The file.
        path: PathBuf,
        /// What the file system said.
        source: io::Error,
    },
    /// A line that was written whole is not an entry.
    #[error("line {line} of the record {path} is not an entry: {reason}")]
    Line {
        /// The file.
        path: PathBuf,
        /// The line, counted from 1.
        line: usize,
        /// What is wrong with it.
        reason: String,
    },
    /// Another ledger writes to the file.
    #[error("the record {path} is in use by another ledger")]
    InUse {
        /// The file.
        path: PathBuf,
    },
}

/// Reads the record that a ledger wrote to this file, also while the ledger runs.
///
/// A last line without an end was being written when the ledger was killed. Nobody was told of it,
/// and it is left out.
pub fn read_record(path: impl AsRef<Path>) -> Result<Vec<Entry>, RecordError> {
    let path = path.as_ref();
    let bytes = std::fs::read(path).map_err(|source| io_error(path, source))?;
    parse_lines(path, &bytes).map(|(entries, _)| entries)
}

/// All that a ledger did, in memory and, if there is a path, in a file.
#[derive(Debug)]
pub(crate) struct Record {
    entries: Vec<Entry>,
    file: Option<Journal>,
}

/// The file, and how much of it is certain.
#[derive(Debug)]
struct Journal {
    file: File,
    length: u64,
    unsynced: bool,
}

impl Record {
    pub(crate) fn in_memory() -> Self {
        Self { entries: Vec::new(), file: None }
    }

    /// Goes on from what is in the file.
    pub(crate) fn open(path: &Path) -> Result<Self, RecordError> {
        let error = |source| io_error(path, source);
        let mut file = OpenOptions::new()
            .read(true)
            .write(true)
            .create(true)
            .truncate(false)
            .open(path)
            .map_err(error)?;
        file.try_lock().map_err(|failure| match failure {
            TryLockError::WouldBlock => RecordError::InUse { path: path.to_owned() },
            TryLockError::Error(source) => error(source),
        })?;
        let mut bytes = Vec::new();
        file.read_to_end(&mut bytes).map_err(error)?;
        let (entries, length) = parse_lines(path, &bytes)?;
        file.set_len(length).map_err(error)?;
        file.seek(SeekFrom::End(0)).map_err(error)?;
        Ok(Self { entries, file: Some(Journal { file, length, unsynced: false }) })
    }

    pub(crate) fn entries(&self) -> &[Entry] {
        &self.entries
    }

    /// Adds an entry, whose position is given here. It is certain after [`Self::sync`].
    pub(crate) fn append(&mut self, mut entry: Entry) -> io::Result<()> {
        entry.position = self.entries.len() as u64;
        if let Some(journal) = &mut self.file {
            journal.write(&entry)?;
        }
        self.entries.push(entry);
        Ok(())
    }

    /// Waits until everything is on the disk.
    pub(crate) fn sync(&mut self) -> io::Result<()> {
        match &mut self.file {
            Some(journal) if journal.unsynced => {
                journal.file.sync_data()?;
                journal.unsynced = false;
                Ok(())
            }
            _ => Ok(()),
        }
    }
}

impl Journal {
    fn write(&mut self, entry: &Entry) -> io::Result<()> {
        let mut line = serde_json::to_vec(&Line::from(entry))?;
        line.push(b'\n');
        if let Err(error) = self.file.write_all(&line) {
            // Half a line would spoil the one that is written next.
            self.file.set_len(self.length)?;
            self.file.seek(SeekFrom::End(0))?;
            return Err(error);
        }
        self.length += line.len() as u64;
        self.unsynced = true;
        Ok(())
    }
}

/// An entry as it is written.
#[derive(Serialize, Deserialize)]
struct Line {
    position: u64,
    service: String,
    batch: String,
    transactions: Vec<String>,
    time: i64,
    verdict: Verdict,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    bytes: Option<String>,
}

impl From<&Entry> for Line {
    fn from(entry: &Entry) -> Self {
        Self {
            position: entry.position,
            service: entry.service_id.to_string(),
            batch: entry.batch_id.to_string(),
            transactions: entry.transaction_ids.iter().map(ToString::to_string).collect(),
            time: entry.time.as_micros(),
            verdict: entry.verdict,
            bytes: entry.batch.as_ref().map(|batch| BASE64_STANDARD.encode(batch)),
        }
    }
}

impl Line {
    fn into_entry(self, position: usize) -> Result<Entry, String> {
        if self.position != position as u64 {
            return Err(format!("its position is {}, not {position}", self.position));
        }
        let parse = |id: &String| id.parse::<HeaderId>().map_err(|error| error.to_string());
        let decode = |text: String| BASE64_STANDARD.decode(text).map(Arc::from);
        Ok(Entry {
            position: self.position,
            service_id: self.service.parse().map_err(|error| format!("{error}"))?,
            batch_id: parse(&self.batch)?,
            transaction_ids: self.transactions.iter().map(parse).collect::<Result<_, _>>()?,
            time: Timestamp::from_micros(self.time),
            verdict: self.verdict,
            batch: self.bytes.map(decode).transpose().map_err(|error| error.to_string())?,
        })
    }
}

/// The entries, and how many bytes they take: a last line without an end is not counted.
fn parse_lines(path: &Path, bytes: &[u8]) -> Result<(Vec<Entry>, u64), RecordError> {
    let length = bytes.iter().rposition(|byte| *byte == b'\n').map_or(0, |last| last + 1);
    let parse = |(position, line): (usize, &[u8])| {
        serde_json::from_slice::<Line>(line)
            .map_err(|error| error.to_string())
            .and_then(|line| line.into_entry(position))
            .map_err(|reason| RecordError::Line {
                path: path.to_owned(),
                line: position + 1,
                reason,
            })
    };
    let lines = bytes[..length].split_inclusive(|byte| *byte == b'\n');
    let entries = lines.enumerate().map(parse).collect::<Result<_, _>>()?;
    Ok((entries, length as u64))
}

fn io_error(path: &Path, source: io::Error) -> RecordError {
    RecordError::Io { path: path.to_owned(), source }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn entry(number: u8) -> Entry {
        Entry {
            position: number.into(),
            service_id: "a::b".parse().unwrap(),
            batch_id: HeaderId::from_bytes([number; 64]),
            transaction_ids: vec![HeaderId::from_bytes([!number; 64])],
            time: Timestamp::from_micros(5),
            verdict: Verdict::Applied,
            batch: number.is_multiple_of(2).then(|| vec![number].into()),
        }
    }

    fn path() -> (tempfile::TempDir, PathBuf) {
        let directory = tempfile::tempdir().unwrap();
        let path = directory.path().join("record");
        (directory, path)
    }

    #[test]
    fn a_record_goes_on_where_it_was_left() {
        let (_directory, path) = path();
        for number in 0..3 {
            let mut record = Record::open(&path).unwrap();
            record.append(entry(number)).unwrap();
            record.sync().unwrap();
        }
        assert_eq!(read_record(&path).unwrap(), [0, 1, 2].map(entry));
    }

    #[test]
    fn half_a_line_at_the_end_is_cut_off() {
        let (_directory, path) = path();
        let mut record = Record::open(&path).unwrap();
        record.append(entry(0)).unwrap();
        drop(record);
        let whole = std::fs::read(&path).unwrap();
        std::fs::write(&path, [&whole[..], &whole[..20]].concat()).unwrap();
        assert_eq!(read_record(&path).unwrap(), [entry(0)]);
        let mut record = Record::open(&path).unwrap();
        record.append(entry(1)).unwrap();
        assert_eq!(read_record(&path).unwrap(), [0, 1].map(entry));
    }

    #[test]
    fn a_whole_line_that_is_no_entry_is_an_error_that_names_it() {
        let (_directory, path) = path();
        let mut record = Record::open(&path).unwrap();
        record.append(entry(0)).unwrap();
        drop(record);
        let good = std::fs::read_to_string(&path).unwrap();
        let repeated = good.clone();
        let upper = good.replace("\"position\":0", "\"position\":1").replace("fe", "FE");
        for bad in ["", "{}", repeated.trim(), &upper.replace("ff", "FF")] {
            std::fs::write(&path, format!("{good}{bad}\n")).unwrap();
            let error = Record::open(&path).unwrap_err();
            assert!(matches!(error, RecordError::Line { line: 2, .. }), "{error}");
        }
    }

    #[test]
    fn two_ledgers_do_not_write_to_one_file() {
        let (_directory, path) = path();
        let _first = Record::open(&path).unwrap();
        let error = Record::open(&path).unwrap_err();
        assert!(matches!(error, RecordError::InUse { .. }), "{error}");
    }
}
