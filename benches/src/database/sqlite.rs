use std::{
    fs::{self, File},
    io,
    os::unix::fs::{FileExt, MetadataExt},
    path::{Path, PathBuf},
    sync::{
        Arc, Mutex,
        atomic::{AtomicBool, Ordering::Relaxed},
    },
    thread::{self, JoinHandle},
    time::Duration,
};

use diesel::{
    Connection, QueryableByName, RunQueryDsl, SqliteConnection, connection::SimpleConnection,
    sql_query, sql_types::BigInt,
};

use super::DatabaseUsage;

/// How often the header of the write-ahead log's index is read.
const INTERVAL: Duration = Duration::from_millis(2);
const FRAME_HEADER: u64 = 24;

/// A database file. A thread counts what is written to its write-ahead log, because SQLite does not.
pub struct Sqlite {
    path: PathBuf,
    counter: Arc<Mutex<LogCounter>>,
    is_stopped: Arc<AtomicBool>,
    thread: Option<JoinHandle<()>>,
    writer: Option<SqliteConnection>,
}

/// What was written to the log, by the header of its index: a counter of transactions, and the number of
/// frames, which starts again when the log is reused.
#[derive(Debug, Default)]
struct LogCounter {
    index: LogIndex,
    last: Option<IndexHeader>,
    transactions: u64,
    frames: u64,
    page_size: u64,
}

/// The index of the log. It stays open, because closing it would end the locks that this process's connections have on it.
#[derive(Debug, Default)]
struct LogIndex {
    path: PathBuf,
    file: Option<(u64, File)>,
}

#[derive(Debug, Clone, Copy)]
struct IndexHeader {
    transactions: u32,
    page_size: u16,
    frames: u32,
}

#[derive(QueryableByName)]
struct Number {
    #[diesel(sql_type = BigInt)]
    number: i64,
}

impl Sqlite {
    pub(super) fn new(directory: &Path) -> Self {
        let path = directory.join("batches.db");
        let index = LogIndex { path: directory.join("batches.db-shm"), file: None };
        let counter = Arc::new(Mutex::new(LogCounter { index, ..LogCounter::default() }));
        let is_stopped = Arc::<AtomicBool>::default();
        let thread = thread::spawn({
            let (counter, is_stopped) = (counter.clone(), is_stopped.clone());
            move || {
                while !is_stopped.load(Relaxed) {
                    counter.lock().unwrap().update();
                    thread::sleep(INTERVAL);
                }
            }
        });
        Self { path, counter, is_stopped, thread: Some(thread), writer: None }
    }

    pub(super) fn url(&self) -> String {
        format!("sqlite://{}", self.path.display())
    }

    pub(super) fn usage(&mut self) -> DatabaseUsage {
        let mut counter = self.counter.lock().unwrap();
        counter.update();
        DatabaseUsage {
            commits: counter.transactions,
            log_bytes: counter.frames * (counter.page_size + FRAME_HEADER),
            ..DatabaseUsage::default()
        }
    }

    /// A connection that commits to disk, as the server's.
    pub(super) fn connect(&self) -> io::Result<SqliteConnection> {
        let path = self.path.display().to_string();
        let mut connection = SqliteConnection::establish(&path).map_err(io::Error::other)?;
        let settings = "pragma busy_timeout = 10000; pragma synchronous = full";
        connection.batch_execute(settings).map_err(io::Error::other)?;
        Ok(connection)
    }

    /// The connection of plain inserts.
    pub(super) fn writer(&mut self) -> &mut SqliteConnection {
        let connection = self.writer.take().unwrap_or_else(|| self.connect().unwrap());
        self.writer.insert(connection)
    }

    pub(super) fn open_batches(&mut self) -> io::Result<i64> {
        let mut connection = self.connect()?;
        let query = "select count(*) as number from batches where ended_at is null";
        let row: Number = sql_query(query).get_result(&mut connection).map_err(io::Error::other)?;
        Ok(row.number)
    }
}

impl Drop for Sqlite {
    fn drop(&mut self) {
        self.is_stopped.store(true, Relaxed);
        if let Some(thread) = self.thread.take() {
            let _ = thread.join();
        }
    }
}

impl LogCounter {
    fn update(&mut self) {
        let Some(header) = self.index.read_header() else { return };
        let (transactions, frames) = match self.last.replace(header) {
            None => (header.transactions, header.frames),
            Some(last) if last.frames > header.frames => {
                (header.transactions.wrapping_sub(last.transactions), header.frames)
            }
            Some(last) => {
                (header.transactions.wrapping_sub(last.transactions), header.frames - last.frames)
            }
        };
        self.transactions += u64::from(transactions);
        self.frames += u64::from(frames);
        self.page_size = header.page_size.into();
    }
}

impl LogIndex {
    /// The header ("WAL-Index Format" in the documentation of SQLite).
    fn read_header(&mut self) -> Option<IndexHeader> {
        let mut bytes = [0; 20];
        self.open()?.read_exact_at(&mut bytes, 0).ok()?;
        let number = |at: usize| {
            u32::from_ne_bytes([bytes[at], bytes[at + 1], bytes[at + 2], bytes[at + 3]])
        };
        let is_initialized = bytes[12] == 1;
        is_initialized.then(|| IndexHeader {
            transactions: number(8),
            page_size: u16::from_ne_bytes([bytes[14], bytes[15]]),
            frames: number(16),
        })
    }

    /// The file, which is another one after all connections were closed.
    fn open(&mut self) -> Option<&File> {
        let inode = fs::metadata(&self.path).ok()?.ino();
        let is_open = self.file.as_ref().is_some_and(|(opened, _)| *opened == inode);
        if !is_open {
            self.file = Some((inode, File::open(&self.path).ok()?));
        }
        self.file.as_ref().map(|(_, file)| file)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn counting_keeps_the_locks_of_connections() {
        let directory = tempfile::tempdir().unwrap();
        let mut database = Sqlite::new(directory.path());
        let writer = database.writer();
        let table = "pragma journal_mode = wal; create table batches (ended_at bigint)";
        writer.batch_execute(table).unwrap();
        writer.batch_execute("begin; select * from batches").unwrap();
        let locks = || {
            let inode = fs::metadata(directory.path().join("batches.db-shm")).unwrap().ino();
            let inode = format!(":{inode} ");
            let locks = fs::read_to_string("/proc/locks").unwrap();
            locks.lines().filter(|lock| lock.contains(&inode)).count()
        };
        let before = locks();
        assert!(before > 0);
        for _ in 0..3 {
            database.usage();
        }
        assert_eq!(locks(), before);
    }
}
