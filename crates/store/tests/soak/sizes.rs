//! How much space the database and the process take.

use std::{collections::BTreeMap, fmt, fs, path::PathBuf, time::Duration};

use diesel::{
    Connection, PgConnection, QueryableByName, RunQueryDsl, SqliteConnection,
    connection::SimpleConnection,
    sql_query,
    sql_types::{BigInt, Text},
};

/// The sizes in bytes at one moment, by name.
pub struct Sample {
    pub batches: usize,
    pub elapsed: Duration,
    pub sizes: BTreeMap<String, u64>,
}

/// The names of the sizes other than those of tables and indexes.
pub const DATABASE: &str = "(database)";
pub const MEMORY: &str = "(memory)";

/// Reads the sizes without the store.
pub enum SizeReader {
    Postgres(String),
    Sqlite(PathBuf),
}

#[derive(QueryableByName)]
struct SizeRow {
    #[diesel(sql_type = Text)]
    name: String,
    #[diesel(sql_type = BigInt)]
    size: i64,
}

const POSTGRES_SIZES: &str = "
    select relname::text as name, pg_total_relation_size(oid) - coalesce(pg_indexes_size(oid), 0) as size
    from pg_class where relkind = 'r' and relnamespace = current_schema()::regnamespace
    union all
    select relname::text, pg_relation_size(oid)
    from pg_class where relkind = 'i' and relnamespace = current_schema()::regnamespace
    union all
    select '(database)', pg_database_size(current_database())";

const SQLITE_SIZES: &str = "
    select name, cast(sum(pgsize) as bigint) as size from dbstat where aggregate = true group by name";

impl SizeReader {
    pub fn open(url: &str) -> Self {
        match url.strip_prefix("sqlite://") {
            Some(path) => Self::Sqlite(path.into()),
            None => Self::Postgres(url.to_owned()),
        }
    }

    /// Vacuums after a short run, which ends before PostgreSQL would do so itself.
    pub fn vacuum_small_run(&self, batches: usize) {
        if let Self::Postgres(url) = self
            && batches < 200_000
        {
            PgConnection::establish(url).unwrap().batch_execute("vacuum").unwrap();
        }
    }

    pub fn read(&self, batches: usize, elapsed: Duration) -> Sample {
        let rows: Vec<SizeRow> = match self {
            Self::Postgres(url) => {
                let mut connection = PgConnection::establish(url).unwrap();
                sql_query(POSTGRES_SIZES).load(&mut connection).unwrap()
            }
            Self::Sqlite(path) => {
                let mut connection = SqliteConnection::establish(path.to_str().unwrap()).unwrap();
                sql_query(SQLITE_SIZES).load(&mut connection).unwrap()
            }
        };
        let mut sizes: BTreeMap<String, u64> =
            rows.into_iter().map(|row| (row.name, row.size.unsigned_abs())).collect();
        if let Self::Sqlite(path) = self {
            let length = |path: PathBuf| fs::metadata(path).map_or(0, |file| file.len());
            let log = path.with_extension("db-wal");
            sizes.insert(DATABASE.to_owned(), length(path.clone()) + length(log));
        }
        sizes.insert(MEMORY.to_owned(), memory());
        Sample { batches, elapsed, sizes }
    }
}

/// The memory of this process.
fn memory() -> u64 {
    let status = fs::read_to_string("/proc/self/status").unwrap_or_default();
    let resident = status.lines().find_map(|line| line.strip_prefix("VmRSS:"));
    let kibibytes =
        resident.and_then(|text| text.trim().trim_end_matches("kB").trim().parse().ok());
    kibibytes.unwrap_or(0u64) * 1024
}

impl fmt::Display for Sample {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{:>9} batches {:>6.0} s", self.batches, self.elapsed.as_secs_f64())?;
        for name in [DATABASE, MEMORY] {
            write!(f, "  {name} {:.1}", mebibytes(self.sizes[name]))?;
        }
        let mut largest: Vec<_> =
            self.sizes.iter().filter(|(name, _)| !name.starts_with('(')).collect();
        largest.sort_by_key(|(_, size)| std::cmp::Reverse(**size));
        for (name, size) in largest.into_iter().take(9) {
            write!(f, "  {name} {:.1}", mebibytes(*size))?;
        }
        write!(f, " MiB")
    }
}

fn mebibytes(bytes: u64) -> f64 {
    bytes as f64 / f64::from(1 << 20)
}
