//! The server and the ledger as processes.

use std::{
    env,
    fs::{self, Permissions},
    io::{self, BufRead, BufReader, Read, Write},
    net::{SocketAddr, TcpListener, TcpStream},
    os::unix::fs::PermissionsExt,
    path::Path,
    process::{Child, Command, Stdio},
    time::{Duration, Instant},
};

use crate::{
    ledger,
    proc_stats::cpu_time,
    run_options::{LedgerProgram, RunOptions},
};

/// A process that is killed when the value is dropped.
#[derive(Debug)]
pub struct Process {
    /// `None`: a thread of this process.
    child: Option<Child>,
    /// Where it takes requests.
    pub address: SocketAddr,
}

impl Process {
    /// The CPU time that it has used; nothing for a thread.
    pub fn cpu_time(&self) -> Duration {
        self.child.as_ref().map_or(Duration::ZERO, |child| cpu_time(child.id()))
    }

    /// Its id, or that of the process of the thread.
    pub fn id(&self) -> u32 {
        self.child.as_ref().map_or_else(std::process::id, Child::id)
    }

    /// Sends SIGTERM and waits until it has ended.
    pub fn stop(mut self) {
        let Some(mut child) = self.child.take() else { return };
        let kill = format!("kill -TERM {}", child.id());
        let _ = Command::new("sh").args(["-c", &kill]).status();
        let _ = child.wait();
    }
}

impl Drop for Process {
    fn drop(&mut self) {
        if let Some(mut child) = self.child.take() {
            let _ = child.kill();
            let _ = child.wait();
        }
    }
}

/// Starts the ledger, from this program.
pub fn start_ledger(options: &RunOptions) -> io::Result<Process> {
    match options.ledger_program {
        LedgerProgram::Own => {}
        LedgerProgram::Thread => return start_ledger_thread(options),
        LedgerProgram::Simulator => return start_simulator(options),
    }
    let program = env::current_exe()?;
    let delay = options.delay.as_millis().to_string();
    let arguments = ["ledger", "--ledger", options.ledger.name(), "--delay", &delay];
    let mut child = Command::new(program)
        .args(arguments)
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .spawn()?;
    let port = first_line(&mut child)?;
    let address = format!("127.0.0.1:{}", port.trim()).parse().map_err(io::Error::other)?;
    Ok(Process { child: Some(child), address })
}

fn start_simulator(options: &RunOptions) -> io::Result<Process> {
    let mut command = Command::new(&options.server);
    command.args(["ledger-sim", options.ledger.name(), "--port", "0", "--log", "error"]);
    command.arg("--valid-for").arg(format!("{}ms", options.delay.as_millis()));
    if options.ledger == ledger::LedgerKind::Scabbard {
        let plan = options.plan();
        (0..options.services).for_each(|service| {
            command.arg("--service").arg(plan.service(service));
        });
    }
    let mut child = command.stdin(Stdio::null()).stdout(Stdio::piped()).spawn()?;
    let line = first_line(&mut child)?;
    let address = printed_address(&line).ok_or_else(|| io::Error::other(line.clone()))?;
    Ok(Process { child: Some(child), address })
}

/// The address of the URL in a line.
fn printed_address(line: &str) -> Option<SocketAddr> {
    line.split("http://").nth(1)?.split(['/', ' ', '\n']).next()?.parse().ok()
}

fn start_ledger_thread(options: &RunOptions) -> io::Result<Process> {
    let listener = TcpListener::bind("127.0.0.1:0")?;
    let address = listener.local_addr()?;
    let (kind, delay) = (options.ledger, options.delay);
    // It serves until this process ends.
    std::thread::spawn(move || ledger::serve(listener, kind, delay));
    Ok(Process { child: None, address })
}

/// Starts the server with its key and log in a directory.
pub fn start_server(
    options: &RunOptions,
    database: &str,
    ledger: SocketAddr,
    directory: &Path,
) -> io::Result<Process> {
    let key = directory.join("key");
    fs::write(&key, "7".repeat(64))?;
    fs::set_permissions(&key, Permissions::from_mode(0o600))?;
    let log = fs::File::options().create(true).append(true).open(directory.join("log"))?;
    let mut command = Command::new(&options.server);
    command.arg("serve").env_clear();
    for (name, value) in settings(options, database, ledger, &key) {
        command.arg(format!("--{}", name.replace(['.', '_'], "-"))).arg(value);
    }
    let mut child = command.stdin(Stdio::null()).stdout(Stdio::piped()).stderr(log).spawn()?;
    let line = first_line(&mut child)?;
    let Some(address) = printed_address(&line) else {
        let log = fs::read_to_string(directory.join("log"))?;
        return Err(io::Error::other(format!("the server printed no address; its log:\n{log}")));
    };
    Ok(Process { child: Some(child), address })
}

fn settings(
    options: &RunOptions,
    database: &str,
    ledger: SocketAddr,
    key: &Path,
) -> Vec<(String, String)> {
    let services = options.services.to_string();
    let sockets = options.event_sockets.unwrap_or(options.services).to_string();
    let mut settings = vec![
        ("database", database.to_owned()),
        ("listen", "127.0.0.1:0".to_owned()),
        ("log", "warn".to_owned()),
        ("access.mode", "none".to_owned()),
        ("ledger.kind", options.ledger.name().to_owned()),
        ("ledger.name", "benchmark".to_owned()),
        ("ledger.urls", format!("http://{ledger}")),
        ("ledger.event_sockets", if options.events { sockets } else { "0".to_owned() }),
        ("testing.new_services", services.clone()),
        ("testing.new_services_per_signer", services),
        ("intake.open_batches", options.batches.max(1).to_string()),
    ];
    if options.ledger == ledger::LedgerKind::Scabbard {
        settings.push(("ledger.key_file", key.display().to_string()));
    }
    let settings = settings.into_iter().map(|(name, value)| (name.to_owned(), value));
    let mut settings: Vec<_> = settings.collect();
    // A setting from the command line replaces that of the benchmark.
    settings.retain(|(name, _)| options.settings.iter().all(|(other, _)| name != other));
    settings.extend_from_slice(&options.settings);
    settings
}

fn first_line(child: &mut Child) -> io::Result<String> {
    let mut line = String::new();
    if let Some(stdout) = child.stdout.take() {
        BufReader::new(stdout).read_line(&mut line)?;
    }
    Ok(line)
}

/// Sends a command to the ledger: `count`, `requests`, `report`, `busy` (accept no batches) or `ready`.
pub fn ask_ledger(ledger: SocketAddr, path: &str) -> io::Result<String> {
    let mut stream = TcpStream::connect(ledger)?;
    stream.write_all(format!("GET /bench/{path} HTTP/1.1\r\n\r\n").as_bytes())?;
    let mut reader = BufReader::new(stream);
    let (mut line, mut length) = (String::new(), 0);
    while line != "\r\n" {
        if let Some(value) = line.strip_prefix("content-length: ") {
            length = value.trim().parse().map_err(io::Error::other)?;
        }
        line.clear();
        reader.read_line(&mut line)?;
    }
    let mut body = vec![0; length];
    reader.read_exact(&mut body)?;
    String::from_utf8(body).map_err(io::Error::other)
}

/// Waits until a condition holds.
pub fn wait_until(
    description: &str,
    limit: Duration,
    mut condition: impl FnMut() -> io::Result<bool>,
) -> io::Result<()> {
    let started = Instant::now();
    while !condition()? {
        if started.elapsed() > limit {
            return Err(io::Error::other(format!(
                "gave up after {limit:?} of waiting until {description}"
            )));
        }
        std::thread::sleep(Duration::from_millis(5));
    }
    Ok(())
}
