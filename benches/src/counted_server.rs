//! The composed server, with its allocations counted: `serve`, the flags of `grid-batch serve`, and
//! `--allocations FILE`. At SIGTERM, it writes to this file how many allocations it has made since it took
//! requests, of how many bytes, and how many of these bytes it still has. SQLite's are not counted.

use std::{alloc::System, env, error::Error, fs, io::Write};

use grid_batch_service::{Config, SETTINGS, Server};
use signal_hook::{consts::SIGTERM, iterator::Signals};
use stats_alloc::{INSTRUMENTED_SYSTEM, Region, StatsAlloc};

#[global_allocator]
static ALLOCATOR: &StatsAlloc<System> = &INSTRUMENTED_SYSTEM;

fn main() -> Result<(), Box<dyn Error>> {
    let (mut flags, mut file) = (Vec::new(), None);
    let mut arguments = env::args().skip(2);
    while let (Some(flag), Some(value)) = (arguments.next(), arguments.next()) {
        let name = flag.trim_start_matches("--");
        if name == "allocations" {
            file = Some(value);
            continue;
        }
        let found = SETTINGS.names().find(|it| it.flag() == name);
        flags.push((found.ok_or_else(|| format!("unknown flag: {flag}"))?.name, value));
    }
    let file = file.ok_or("--allocations is missing")?;
    let mut signals = Signals::new([SIGTERM])?;
    let server = Server::start(&Config::from_flags(flags)?)?;
    let region = Region::new(ALLOCATOR);
    writeln!(std::io::stdout(), "Accepting batches at {}/batches", server.url())?;
    signals.forever().next();
    let used = region.change();
    let allocations = used.allocations + used.reallocations;
    let kept = used.bytes_allocated.saturating_sub(used.bytes_deallocated);
    fs::write(file, format!("{allocations} {} {kept}", used.bytes_allocated))?;
    Ok(server.stop()?)
}
