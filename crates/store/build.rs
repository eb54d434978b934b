//! Lists the migrations: each folder is one.

use std::{
    env,
    fmt::Write as _,
    fs, io,
    path::{Path, PathBuf},
};

fn main() -> io::Result<()> {
    println!("cargo::rerun-if-changed=migrations");
    let folder = PathBuf::from(env::var_os("CARGO_MANIFEST_DIR").unwrap_or_default());
    let mut source = String::new();
    for (constant, database) in [("POSTGRES", "postgres"), ("SQLITE", "sqlite")] {
        let scripts = scripts(&folder.join("migrations").join(database))?;
        let _ = write!(
            source,
            "#[cfg(feature = {database:?})]\n\
             pub(super) const {constant}: &[Script] = &[\n{scripts}];\n"
        );
    }
    let out = PathBuf::from(env::var_os("OUT_DIR").unwrap_or_default());
    fs::write(out.join("scripts.rs"), source)
}

/// One `Script` for each folder, ordered by name.
fn scripts(folder: &Path) -> io::Result<String> {
    let mut paths: Vec<PathBuf> =
        fs::read_dir(folder)?.map(|entry| Ok(entry?.path())).collect::<io::Result<_>>()?;
    paths.sort();
    let mut scripts = String::new();
    for path in paths {
        let name = path.file_name().unwrap_or_default();
        let [up, down] = ["up.sql", "down.sql"].map(|script| path.join(script));
        let _ = writeln!(
            scripts,
            "Script {{ name: {name:?}, up: include_str!({up:?}), down: include_str!({down:?}) }},"
        );
    }
    Ok(scripts)
}
