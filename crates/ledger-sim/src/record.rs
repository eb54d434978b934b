use std::{
    fs::{File, OpenOptions, TryLockError},
    io::{self, Read, Seek, SeekFrom, Write},
    path::{Path, PathBuf},
    sync::Arc,
};

use base64::{Engine, prelude::BASE64_STANDARD};
use grid_batch_core::{ItemId, ServiceId, Timestamp};
use serde::{Deserialize, Serialize};
use thiserror::Error;

/// One execution of a batch.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Entry {
    /// Its position in the record, counted from 0.
    pub position: u64,
    /// The service that the batch was sent to; `global` on Sawtooth.
    pub service_id: ServiceId,
    /// The batch.
    pub batch_id: ItemId,
    /// Its transactions, in order.
    pub transaction_ids: Vec<ItemId>,
    /// The time of the execution.
    pub time: Timestamp,
    /// The result of the execution.
    pub result: ExecutionResult,
    /// The bytes of a batch that Sawtooth committed, which it returns on request.
    pub batch: Option<Arc<[u8]>>,
    /// Whether a fault or a rule made the batch invalid, regardless of its content.
    pub refused: bool,
}

/// The result of an execution.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum ExecutionResult {
    /// The state was changed.
    Applied,
    /// The state was not changed.
    Invalid,
}

/// The reason why a record cannot be read or written.
#[derive(Debug, Error)]
#[non_exhaustive]
pub enum RecordError {
    /// The file cannot be read or written.
    #[error("cannot read or write the record {path}")]
    Io {
        /// The file.
        path: PathBuf,
        /// The error of the operating system.
        source: io::Error,
    },
    /// A complete line is not an entry.
    #[error("line {line} of the record {path} is not an entry: {reason}")]
    Line {
        /// The file.
        path: PathBuf,
        /// The line, counted from 1.
        line: usize,
        /// The reason.
        reason: String,
    },
    /// Another ledger writes to the file.
    #[error("the record {path} is in use by another ledger")]
    InUse {
        /// The file.
        path: PathBuf,
    },
}

/// Reads the record in a file. The ledger may be running.
///
/// An incomplete last line is ignored: the ledger was killed while it wrote the line, before any
/// response depended on it.
pub fn read_record(path: impl AsRef<Path>) -> Result<Vec<Entry>, RecordError> {
    let path = path.as_ref();
    let bytes = std::fs::read(path).map_err(|source| io_error(path, source))?;
    parse_lines(path, &bytes).map(|(entries, _)| entries)
}

/// The executions of a ledger, in memory and optionally in a file.
#[derive(Debug)]
pub(crate) struct Record {
    entries: Vec<Entry>,
    file: Option<RecordFile>,
}

#[derive(Debug)]
struct RecordFile {
    file: File,
    /// The length of the complete lines.
    length: u64,
    is_synced: bool,
}

impl Record {
    pub(crate) fn in_memory() -> Self {
        Self { entries: Vec::new(), file: None }
    }

    /// Opens or creates the file and continues from its entries.
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
        Ok(Self { entries, file: Some(RecordFile { file, length, is_synced: true }) })
    }

    pub(crate) fn entries(&self) -> &[Entry] {
        &self.entries
    }

    /// Appends an entry and sets its position. The entry is durable after [`Self::sync`].
    pub(crate) fn append(&mut self, mut entry: Entry) -> io::Result<()> {
        entry.position = self.entries.len() as u64;
        if let Some(file) = &mut self.file {
            file.write(&entry)?;
        }
        self.entries.push(entry);
        Ok(())
    }

    /// Makes all entries durable.
    pub(crate) fn sync(&mut self) -> io::Result<()> {
        match &mut self.file {
            Some(file) if !file.is_synced => {
                file.file.sync_data()?;
                file.is_synced = true;
                Ok(())
            }
            _ => Ok(()),
        }
    }
}

impl RecordFile {
    fn write(&mut self, entry: &Entry) -> io::Result<()> {
        let mut line = serde_json::to_vec(&Line::from(entry))?;
        line.push(b'\n');
        if let Err(error) = self.file.write_all(&line) {
            // Remove the incomplete line, so that the next one starts on a line of its own.
            self.file.set_len(self.length)?;
            self.file.seek(SeekFrom::End(0))?;
            return Err(error);
        }
        self.length += line.len() as u64;
        self.is_synced = false;
        Ok(())
    }
}

/// The format of an entry in the file.
#[derive(Serialize, Deserialize)]
struct Line {
    position: u64,
    service: String,
    batch: String,
    transactions: Vec<String>,
    time: i64,
    result: ExecutionResult,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    bytes: Option<String>,
    #[serde(default, skip_serializing_if = "is_false")]
    refused: bool,
}

#[expect(clippy::trivially_copy_pass_by_ref, reason = "serde passes a reference")]
fn is_false(value: &bool) -> bool {
    !*value
}

impl From<&Entry> for Line {
    fn from(entry: &Entry) -> Self {
        Self {
            position: entry.position,
            service: entry.service_id.to_string(),
            batch: entry.batch_id.to_string(),
            transactions: entry.transaction_ids.iter().map(ToString::to_string).collect(),
            time: entry.time.as_micros(),
            result: entry.result,
            bytes: entry.batch.as_ref().map(|batch| BASE64_STANDARD.encode(batch)),
            refused: entry.refused,
        }
    }
}

impl Line {
    fn into_entry(self, position: usize) -> Result<Entry, String> {
        if self.position != position as u64 {
            return Err(format!("its position is {}, not {position}", self.position));
        }
        let parse = |id: &String| {
            let id = id.parse::<grid_batch_protocol::HeaderId>();
            id.map(ItemId::from).map_err(|error| error.to_string())
        };
        let decode = |text: String| BASE64_STANDARD.decode(text).map(Arc::from);
        Ok(Entry {
            position: self.position,
            service_id: self.service.parse().map_err(|error| format!("{error}"))?,
            batch_id: parse(&self.batch)?,
            transaction_ids: self.transactions.iter().map(parse).collect::<Result<_, _>>()?,
            time: Timestamp::from_micros(self.time),
            result: self.result,
            batch: self.bytes.map(decode).transpose().map_err(|error| error.to_string())?,
            refused: self.refused,
        })
    }
}

/// The entries, and the length of their lines. An incomplete last line does not count.
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

pub(crate) fn io_error(path: &Path, source: io::Error) -> RecordError {
    RecordError::Io { path: path.to_owned(), source }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn entry(number: u8) -> Entry {
        Entry {
            position: number.into(),
            service_id: "a::b".parse().unwrap(),
            batch_id: ItemId::from_bytes([number; 64]),
            transaction_ids: vec![ItemId::from_bytes([!number; 64])],
            time: Timestamp::from_micros(5),
            result: ExecutionResult::Applied,
            batch: number.is_multiple_of(2).then(|| vec![number].into()),
            refused: number == 1,
        }
    }

    fn path() -> (tempfile::TempDir, PathBuf) {
        let directory = tempfile::tempdir().unwrap();
        let path = directory.path().join("record");
        (directory, path)
    }

    #[test]
    fn reopened_record_is_continued() {
        let (_directory, path) = path();
        for number in 0..3 {
            let mut record = Record::open(&path).unwrap();
            record.append(entry(number)).unwrap();
            record.sync().unwrap();
        }
        assert_eq!(read_record(&path).unwrap(), [0, 1, 2].map(entry));
    }

    #[test]
    fn incomplete_last_line_is_removed() {
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
    fn invalid_line_is_an_error_that_names_it() {
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
    fn record_in_use_cannot_be_opened() {
        let (_directory, path) = path();
        let _first = Record::open(&path).unwrap();
        let error = Record::open(&path).unwrap_err();
        assert!(matches!(error, RecordError::InUse { .. }), "{error}");
    }
}
