//! The namespace of a store's tables in a database that has other tables: a schema on PostgreSQL, or a prefix on
//! SQLite, which has no schemas.
//!
//! Statements and migrations name the tables without the namespace. It is added to each text before it is sent to the
//! database, so that nothing depends on the `search_path` of a session.

use std::{borrow::Cow, sync::Arc};

use thiserror::Error;

use super::{
    Dialect,
    migrations::{StoredNames, stored_names},
};

/// Separates the tables of a store from other tables in the same database. The default is no namespace.
///
/// On PostgreSQL, it is the name of a schema; on SQLite, table names are prefixed with it and an underscore.
///
/// ```
/// use grid_batch_store::{Namespace, StoreOptions};
///
/// let namespace = Namespace::new("grid_batch")?;
/// let options = StoreOptions { namespace, ..StoreOptions::default() };
/// # Ok::<(), grid_batch_store::NamespaceError>(())
/// ```
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Namespace(Option<Arc<str>>);

/// The name cannot be used as a schema and a prefix on both databases.
#[derive(Debug, Clone, PartialEq, Eq, Error)]
#[error(
    "the namespace {name:?} must have up to 40 lower-case letters, digits and underscores, begin with a letter, and \
     not with pg_ or sqlite_"
)]
pub struct NamespaceError {
    name: String,
}

impl Namespace {
    const LONGEST: usize = 40;

    /// A namespace with this name.
    pub fn new(name: &str) -> Result<Self, NamespaceError> {
        let is_part = |byte: u8| byte.is_ascii_lowercase() || byte.is_ascii_digit() || byte == b'_';
        let is_valid = name.len() <= Self::LONGEST
            && name.starts_with(|first: char| first.is_ascii_lowercase())
            && name.bytes().all(is_part)
            && !["pg_", "sqlite_"].iter().any(|reserved| name.starts_with(reserved));
        if is_valid {
            Ok(Self(Some(name.into())))
        } else {
            Err(NamespaceError { name: name.to_owned() })
        }
    }

    pub(crate) fn name(&self) -> Option<&str> {
        self.0.as_deref()
    }

    /// The prefix of table names on SQLite.
    #[cfg(feature = "sqlite")]
    pub(crate) fn prefix(&self) -> String {
        self.name().map_or_else(String::new, |name| format!("{name}_"))
    }

    /// The text with the names of this namespace.
    pub(crate) fn qualify<'a>(&self, dialect: Dialect, sql: &'a str) -> Cow<'a, str> {
        match self.name() {
            None => Cow::Borrowed(sql),
            Some(name) => {
                Cow::Owned(qualified(sql, Qualifier::new(dialect, name, stored_names(dialect))))
            }
        }
    }

    /// Like [`qualify`](Self::qualify), for a migration, which may also change the catalog of SQLite.
    pub(crate) fn qualify_script(&self, dialect: Dialect, sql: &str) -> String {
        let Some(name) = self.name() else { return sql.to_owned() };
        let qualifier = Qualifier::new(dialect, name, stored_names(dialect));
        let in_catalog = sql.contains("sqlite_schema");
        qualified(sql, Qualifier { literals: in_catalog, ..qualifier })
    }
}

/// Adds a namespace to names.
#[derive(Clone, Copy)]
struct Qualifier<'a> {
    dialect: Dialect,
    namespace: &'a str,
    names: &'a StoredNames,
    /// Whether texts in quotes can be table names.
    literals: bool,
}

impl<'a> Qualifier<'a> {
    fn new(dialect: Dialect, namespace: &'a str, names: &'a StoredNames) -> Self {
        Self { dialect, namespace, names, literals: false }
    }

    /// Writes a token, with the namespace if it is a name in the namespace.
    fn write(self, token: Token<'_>, place: &Place<'_>, next: &str, sql: &mut String) {
        let Some(name) = token.name else {
            sql.push_str(&self.literal(token.text));
            return;
        };
        let is_table = self.names.tables.contains(name) && place.is_of_table(next);
        let is_index = self.names.indexes.contains_key(name) && place.previous != ".";
        let namespace = self.namespace;
        match self.dialect {
            #[cfg(feature = "postgres")]
            Dialect::Postgres if is_table || is_index && place.drops_index() => {
                sql.push_str(&format!("\"{namespace}\".{}", token.text));
            }
            #[cfg(feature = "sqlite")]
            Dialect::Sqlite if is_table || is_index => {
                let text = token.text.replace(name, &format!("{namespace}_{name}"));
                sql.push_str(&text);
            }
            _ => sql.push_str(token.text),
        }
    }

    fn literal<'t>(self, text: &'t str) -> Cow<'t, str> {
        let quoted = text.strip_prefix('\'').and_then(|text| text.strip_suffix('\''));
        match quoted {
            Some(name) if self.literals && self.names.tables.contains(name) => {
                format!("'{}_{name}'", self.namespace).into()
            }
            _ => text.into(),
        }
    }
}

fn qualified(text: &str, qualifier: Qualifier<'_>) -> String {
    let mut sql = String::with_capacity(text.len() + text.len() / 4);
    let mut place = Place::default();
    for (token, next) in tokens(text) {
        qualifier.write(token, &place, next, &mut sql);
        place.after(token);
    }
    sql
}

/// The context of a token, from the tokens before it. It is needed because columns and results can have the same names
/// as tables.
#[derive(Debug, Default)]
pub(super) struct Place<'a> {
    pub(super) previous: &'a str,
    pub(super) before_previous: &'a str,
    /// Whether this is a list of tables, for each open parenthesis.
    is_list: Vec<bool>,
    is_outer_list: bool,
}

impl<'a> Place<'a> {
    /// A name after one of these is the name of a table, a view or a function.
    const BEFORE_TABLES: [&'static str; 11] = [
        "from",
        "join",
        "into",
        "update",
        "table",
        "view",
        "function",
        "references",
        "on",
        "exists",
        "using",
    ];
    /// These end a list of tables.
    const AFTER_LISTS: [&'static str; 11] = [
        "where",
        "select",
        "set",
        "group",
        "order",
        "union",
        "returning",
        "values",
        "having",
        "limit",
        "for",
    ];

    /// Whether a name here, followed by `next`, is a table name.
    fn is_of_table(&self, next: &str) -> bool {
        self.previous != "."
            && (next.starts_with('.')
                || is_one_of(self.previous, &Self::BEFORE_TABLES)
                || matches!(self.previous, "," | "(") && self.is_in_list())
    }

    fn is_in_list(&self) -> bool {
        self.is_list.last().copied().unwrap_or(self.is_outer_list)
    }

    #[cfg(feature = "postgres")]
    fn drops_index(&self) -> bool {
        self.previous.eq_ignore_ascii_case("index")
            && self.before_previous.eq_ignore_ascii_case("drop")
    }

    pub(super) fn after(&mut self, token: Token<'a>) {
        if token.is_space() {
            return;
        }
        if token.text == "(" {
            let is_joined = is_one_of(self.previous, &["from", "join"])
                || matches!(self.previous, "," | "(") && self.is_in_list();
            self.is_list.push(is_joined);
        } else if token.text == ")" {
            self.is_list.pop();
        } else if token.text.eq_ignore_ascii_case("from") {
            self.set_list(true);
        } else if is_one_of(token.text, &Self::AFTER_LISTS) {
            self.set_list(false);
        }
        self.before_previous = self.previous;
        self.previous = token.text;
    }

    fn set_list(&mut self, is_list: bool) {
        *self.is_list.last_mut().unwrap_or(&mut self.is_outer_list) = is_list;
    }
}

fn is_one_of(text: &str, words: &[&str]) -> bool {
    words.iter().any(|word| word.eq_ignore_ascii_case(text))
}

/// A word, a mark, a literal, a comment or white space.
#[derive(Debug, Clone, Copy)]
pub(super) struct Token<'a> {
    pub(super) text: &'a str,
    /// The text without quotation marks, if it can be a name.
    pub(super) name: Option<&'a str>,
}

impl Token<'_> {
    fn is_space(&self) -> bool {
        self.text.starts_with(char::is_whitespace) || self.text.starts_with("--")
    }
}

/// Each token of a text, with the text after it.
pub(super) fn tokens(text: &str) -> impl Iterator<Item = (Token<'_>, &str)> {
    let mut rest = text;
    std::iter::from_fn(move || {
        let token = first_token(rest)?;
        rest = &rest[token.text.len()..];
        Some((token, rest))
    })
}

fn first_token(text: &str) -> Option<Token<'_>> {
    let first = text.chars().next()?;
    let up_to = |end: Option<usize>| &text[..end.unwrap_or(text.len())];
    let is_word = |c: char| c.is_ascii_alphanumeric() || c == '_';
    let token = match first {
        '-' if text.starts_with("--") => up_to(text.find('\n')),
        '\'' | '"' | '`' => up_to(text[1..].find(first).map(|end| end + 2)),
        _ if first.is_whitespace() => up_to(text.find(|c: char| !c.is_whitespace())),
        _ if is_word(first) => up_to(text.find(|c: char| !is_word(c))),
        _ => &text[..first.len_utf8()],
    };
    let name = match first {
        '"' | '`' => Some(token.trim_matches(first)),
        _ => is_word(first).then_some(token),
    };
    Some(Token { text: token, name })
}

/// The words of a statement that are table names but would not get a namespace. Two tables have columns, and some
/// results, that are named like a table.
#[cfg(test)]
pub(crate) fn tables_without_namespace(dialect: Dialect, sql: &str) -> Vec<&str> {
    const COLUMNS: [&str; 1] = ["services"];
    let tables = &stored_names(dialect).tables;
    let mut place = Place::default();
    let mut found = Vec::new();
    for (token, next) in tokens(sql) {
        let name = token.name.filter(|name| tables.contains(name) && !COLUMNS.contains(name));
        found.extend(
            name.filter(|_| !place.is_of_table(next) && ![".", "as"].contains(&place.previous)),
        );
        place.after(token);
    }
    found
}

#[cfg(test)]
#[cfg(all(feature = "postgres", feature = "sqlite"))]
mod tests {
    use super::*;

    fn both(sql: &str) -> [String; 2] {
        let namespace = Namespace::new("gb").unwrap();
        [Dialect::Postgres, Dialect::Sqlite]
            .map(|dialect| namespace.qualify(dialect, sql).into_owned())
    }

    #[test]
    fn tables_get_the_namespace_wherever_they_are_named() {
        for (sql, expected) in [
            ("select b.seq from batches b", "select b.seq from @batches b"),
            (
                "SELECT \"batches\".\"seq\" FROM \"batches\"",
                "SELECT @\"batches\".\"seq\" FROM @\"batches\"",
            ),
            ("update lanes as l set batch_seq = 1", "update @lanes as l set batch_seq = 1"),
            ("delete from lanes where lanes.lane = 0", "delete from @lanes where @lanes.lane = 0"),
            (
                "insert into halts (batch_seq) values (?)",
                "insert into @halts (batch_seq) values (?)",
            ),
            ("select 1 from lanes l, ledger d", "select 1 from @lanes l, @ledger d"),
            (
                "select 1 from (select 2 from halts) x, ledger",
                "select 1 from (select 2 from @halts) x, @ledger",
            ),
            (
                "select 1 FROM (\"services\" INNER JOIN \"lanes\" ON 1)",
                "select 1 FROM (@\"services\" INNER JOIN @\"lanes\" ON 1)",
            ),
            ("a int references services", "a int references @services"),
        ] {
            let [postgres, sqlite] = both(sql);
            assert_eq!(postgres, expected.replace('@', "\"gb\"."));
            assert_eq!(sqlite, expected.replace("@\"", "\"gb_").replace('@', "gb_"));
        }
    }

    #[test]
    fn other_words_stay_as_they_are() {
        for sql in [
            "select 1 -- from batches\n",
            "select w.services, services, 'from batches' from (select 1 as services) w",
            "select l.services, count(*) as batches from (select 1) l order by services, halts",
            "create table other (id int, services text, transactions text)",
            "select x from other_batches, batches_of_others",
        ] {
            assert_eq!(both(sql), [sql, sql]);
        }
    }

    #[test]
    fn indexes_are_in_the_namespace_of_their_table() {
        let [postgres, sqlite] = both("create index lanes_busy on lanes (lane)");
        assert_eq!(postgres, "create index lanes_busy on \"gb\".lanes (lane)");
        assert_eq!(sqlite, "create index gb_lanes_busy on gb_lanes (lane)");
        let [postgres, sqlite] = both("drop index lanes_busy");
        assert_eq!(postgres, "drop index \"gb\".lanes_busy");
        assert_eq!(sqlite, "drop index gb_lanes_busy");
    }

    #[test]
    fn functions_and_the_tables_in_them_get_the_namespace() {
        let namespace = Namespace::new("gb").unwrap();
        let create = "create function grid_batch_add(a text) returns bigint language sql as $$ \
            insert into intake_lists (list) values ($1) returning id $$";
        let qualified = namespace.qualify_script(Dialect::Postgres, create);
        assert!(qualified.starts_with("create function \"gb\".grid_batch_add(a text)"));
        assert!(qualified.contains("$$ insert into \"gb\".intake_lists (list)"), "{qualified}");
        let drop =
            namespace.qualify_script(Dialect::Postgres, "drop function grid_batch_add(text)");
        assert_eq!(drop, "drop function \"gb\".grid_batch_add(text)");
    }

    #[test]
    fn text_that_has_the_namespace_does_not_get_it_again() {
        for sql in ["select 1 from batches, lanes where lanes.lane = 1", "drop index lanes_busy"] {
            let namespace = Namespace::new("gb").unwrap();
            for dialect in [Dialect::Postgres, Dialect::Sqlite] {
                let once = namespace.qualify(dialect, sql).into_owned();
                assert_eq!(namespace.qualify(dialect, &once), once);
            }
        }
    }

    #[test]
    fn only_names_for_both_databases_are_accepted() {
        for name in ["", "Grid", "1a", "_a", "a-b", "a\"b", "pg_a", "sqlite_a", &"a".repeat(41)] {
            assert!(Namespace::new(name).is_err(), "{name}");
        }
        for name in ["a", "grid_batch", "grid2"] {
            assert!(Namespace::new(name).is_ok(), "{name}");
        }
    }
}
