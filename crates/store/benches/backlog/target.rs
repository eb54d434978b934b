use std::{
    env, fmt, fs,
    path::{Path, PathBuf},
    thread,
    time::Duration,
};

use diesel::{
    Connection, PgConnection, QueryableByName, RunQueryDsl, SqliteConnection,
    connection::SimpleConnection, sql_query, sql_types::BigInt,
};
use grid_batch_store::{ClaimOptions, ClaimStore, DatabaseUrl, Store, StoreOptions};
use grid_batch_test_postgres::{PostgresServer, TestDatabase};

/// A kind of database to measure.
pub enum Target {
    Postgres(PostgresServer),
    Sqlite,
}

/// One database of that kind, initially empty.
pub enum MeasuredDatabase {
    Postgres(TestDatabase),
    Sqlite(tempfile::TempDir),
}

impl Target {
    /// A server that commits to disk, as in production. It is a new one unless `GRID_BATCH_TEST_DATABASE_URL` names
    /// one.
    pub fn postgres() -> Self {
        Self::Postgres(match env::var_os("GRID_BATCH_TEST_DATABASE_URL") {
            Some(_) => PostgresServer::from_env_or_start(),
            None => PostgresServer::start_durable(),
        })
    }

    pub fn sqlite() -> Self {
        Self::Sqlite
    }

    pub fn create_database(&self) -> MeasuredDatabase {
        match self {
            Self::Postgres(server) => MeasuredDatabase::Postgres(TestDatabase::create_on(server)),
            Self::Sqlite => {
                MeasuredDatabase::Sqlite(tempfile::tempdir().expect("a temporary directory"))
            }
        }
    }

    /// The unit of reads. PostgreSQL counts rows; the operating system counts bytes of a file.
    pub fn unit_read(&self) -> &'static str {
        match self {
            Self::Postgres(_) => "rows read",
            Self::Sqlite => "blocks of 4096 bytes read into an empty cache",
        }
    }
}

impl fmt::Display for Target {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Postgres(_) => f.write_str("PostgreSQL"),
            Self::Sqlite => f.write_str("SQLite"),
        }
    }
}

impl MeasuredDatabase {
    pub fn url(&self) -> DatabaseUrl {
        match self {
            Self::Postgres(database) => database.url().parse(),
            Self::Sqlite(_) => format!("sqlite://{}", self.file().display()).parse(),
        }
        .expect("a URL made here")
    }

    pub fn file(&self) -> PathBuf {
        match self {
            Self::Postgres(_) => panic!("a PostgreSQL database is not one file"),
            Self::Sqlite(dir) => dir.path().join("batches.db"),
        }
    }

    pub fn open(&self, connections: u32) -> Store {
        let options = StoreOptions { connections, ..StoreOptions::default() };
        Store::open(&self.url(), options).expect("a database to measure on")
    }

    /// Registers an instance that claims all services for longer than the benchmark takes.
    pub fn claim_all(&self, connections: u32) -> ClaimStore {
        let day = Duration::from_secs(24 * 60 * 60);
        let options =
            ClaimOptions { idle_expiry: day, full_expiry: 2 * day, ..ClaimOptions::default() };
        let claims = ClaimStore::register(self.open(connections), options).expect("an instance");
        // This uses another connection, so that the caches of the store's own connections stay empty.
        let give = format!("update service_id_claims set claimant = '{}'", claims.instance());
        match self {
            Self::Postgres(database) => {
                let mut connection = PgConnection::establish(database.url()).expect("a connection");
                connection.batch_execute(&give).expect("claims");
            }
            Self::Sqlite(_) => {
                let file = self.file();
                let mut connection =
                    SqliteConnection::establish(&file.to_string_lossy()).expect("a connection");
                connection.batch_execute(&give).expect("claims");
            }
        }
        claims
    }

    /// Does what the database would do later by itself: checkpoint, vacuum and analyze.
    pub fn settle(&self) {
        match self {
            Self::Postgres(database) => {
                let mut connection = PgConnection::establish(database.url()).expect("a connection");
                sql_query("vacuum analyze").execute(&mut connection).expect("a vacuum");
                sql_query("checkpoint").execute(&mut connection).expect("a checkpoint");
            }
            Self::Sqlite(_) => {
                let file = self.file();
                let mut connection =
                    SqliteConnection::establish(&file.to_string_lossy()).expect("a connection");
                let checkpoint = "pragma wal_checkpoint(truncate)";
                connection.batch_execute(checkpoint).expect("a checkpoint");
                let file = fs::File::open(file).expect("the database");
                file.sync_all().expect("the database on the disk");
            }
        }
    }

    /// How much `work` reads, with a store that has just been opened.
    pub fn count_reads<T>(&self, work: impl FnOnce(&ClaimStore) -> T) -> (T, u64) {
        let claims = self.claim_all(1);
        let before = self.read_so_far();
        let done = work(&claims);
        if let Self::Sqlite(_) = self {
            return (done, self.read_so_far() - before);
        }
        // A server process updates the counts when it ends.
        drop(claims);
        self.wait_until_alone();
        (done, self.read_so_far() - before)
    }

    fn read_so_far(&self) -> u64 {
        match self {
            Self::Postgres(_) => self.ask(
                "select coalesce(sum(seq_tup_read + coalesce(idx_tup_fetch, 0)), 0)::bigint
                     as answer from pg_stat_user_tables where schemaname = current_schema",
            ),
            Self::Sqlite(_) => {
                let counts =
                    fs::read_to_string("/proc/self/io").expect("the counts of this process");
                let read = counts.lines().find_map(|line| line.strip_prefix("rchar: "));
                read.and_then(|count| count.parse::<u64>().ok()).expect("bytes read") / 4096
            }
        }
    }

    /// The server process of the only session that the measured store has. `None` on SQLite.
    pub fn session(&self) -> Option<u64> {
        matches!(self, Self::Postgres(_)).then(|| {
            self.ask(
                "select pid::bigint as answer from pg_stat_activity
                 where backend_type = 'client backend' and pid <> pg_backend_pid()
                 order by backend_start desc limit 1",
            )
        })
    }

    /// The total number of bytes that were written to the log. On SQLite, this must be called at least once between two
    /// restarts of the log.
    pub fn log_position(&self, log: &mut SqliteLog) -> u64 {
        match self {
            Self::Postgres(_) => {
                self.ask("select (pg_current_wal_insert_lsn() - '0/0')::bigint as answer")
            }
            Self::Sqlite(_) => log.position(&self.file().with_extension("db-shm")),
        }
    }

    fn wait_until_alone(&self) {
        let others = "select count(*) as answer from pg_stat_activity
                      where backend_type = 'client backend' and pid <> pg_backend_pid()";
        while self.ask(others) > 0 {
            thread::yield_now();
        }
    }

    fn ask(&self, sql: &str) -> u64 {
        let Self::Postgres(database) = self else { panic!("only PostgreSQL can be queried") };
        let mut connection = PgConnection::establish(database.url()).expect("a connection");
        let row: Answer = sql_query(sql).get_result(&mut connection).expect("an answer");
        row.answer.unsigned_abs()
    }
}

/// Counts what was written to the write-ahead log of an SQLite file, from the header of its index. The number of frames
/// starts again when the log is reused.
#[derive(Default)]
pub struct SqliteLog {
    frames: u64,
    last: u32,
}

impl SqliteLog {
    const FRAME_HEADER: u64 = 24;

    fn position(&mut self, index: &Path) -> u64 {
        let header = fs::read(index).expect("the index of the log");
        let bytes = |at: usize| [header[at], header[at + 1], header[at + 2], header[at + 3]];
        let (frames, [_, _, size @ ..]) = (u32::from_ne_bytes(bytes(16)), bytes(12));
        self.frames += u64::from(if frames < self.last { frames } else { frames - self.last });
        self.last = frames;
        self.frames * (u64::from(u16::from_ne_bytes(size)) + Self::FRAME_HEADER)
    }
}

#[derive(QueryableByName)]
struct Answer {
    #[diesel(sql_type = BigInt)]
    answer: i64,
}
