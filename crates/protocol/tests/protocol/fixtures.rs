//! The files made by published clients.

use std::{fs, path::Path};

/// The body of a request, and the ids in it according to the client.
pub(crate) struct Fixture {
    pub(crate) name: String,
    pub(crate) body: Vec<u8>,
    /// For each batch, its id and the ids of its transactions.
    pub(crate) ids: Vec<Vec<String>>,
}

pub(crate) fn read(path: &str) -> Vec<u8> {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/fixtures").join(path);
    fs::read(&path).unwrap_or_else(|error| panic!("{}: {error}", path.display()))
}

pub(crate) fn read_text(path: &str) -> String {
    String::from_utf8(read(path)).expect("the fixture is text")
}

pub(crate) fn of_client(client: &str) -> Vec<Fixture> {
    let mut fixtures: Vec<Fixture> = Vec::new();
    for line in read_text(&format!("{client}/ids.txt")).lines() {
        let mut fields = line.split(' ').map(str::to_owned);
        let name = format!("{client}/{}", fields.next().unwrap_or_default());
        let ids = fields.collect();
        match fixtures.last_mut() {
            Some(last) if last.name == name => last.ids.push(ids),
            _ => fixtures.push(Fixture { body: read(&name), name, ids: vec![ids] }),
        }
    }
    fixtures
}

pub(crate) fn all() -> Vec<Fixture> {
    ["python", "javascript"].into_iter().flat_map(of_client).collect()
}
