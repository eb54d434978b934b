//! The node of the small ledger. Each connection has one request, a line such as `send 5 until 9`, and one answer,
//! also a line.

use std::{
    io::{self, BufRead, BufReader, Write},
    net::{SocketAddr, TcpListener, TcpStream},
    sync::{Arc, Condvar, Mutex, MutexGuard},
    thread,
};

use grid_batch_ledger_tests::Fault;

use crate::variant::Variant;

pub struct Node {
    pub address: SocketAddr,
    shared: Arc<Shared>,
}

struct Shared {
    state: Mutex<State>,
    changed: Condvar,
}

struct State {
    variant: Variant,
    identity: String,
    /// The batches that are accepted but not applied.
    queue: Vec<String>,
    /// The statuses that it reports, which a restart may lose.
    reported: Vec<(String, &'static str)>,
    applied: Vec<String>,
    /// The batches that are applied again with the next batch.
    again: Vec<String>,
    arrivals: usize,
    height: u64,
    /// The answer to each submission, if it refuses them.
    refusal: Option<&'static str>,
    applies_nothing: bool,
    /// The fault of the next submission.
    next: Option<Fault>,
    held: Option<Held>,
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum Held {
    Waits,
    Continues,
}

impl Node {
    pub fn start(variant: Variant, identity: &str) -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let address = listener.local_addr().unwrap();
        let state = State {
            variant,
            identity: identity.to_owned(),
            queue: Vec::new(),
            reported: Vec::new(),
            applied: Vec::new(),
            again: Vec::new(),
            arrivals: 0,
            height: 0,
            refusal: None,
            applies_nothing: false,
            next: None,
            held: None,
        };
        let shared = Arc::new(Shared { state: Mutex::new(state), changed: Condvar::new() });
        let serving = Arc::clone(&shared);
        // The thread ends with the process of the test.
        thread::spawn(move || {
            for stream in listener.incoming() {
                let shared = Arc::clone(&serving);
                thread::spawn(move || shared.serve(&stream?));
            }
        });
        Self { address, shared }
    }

    pub fn fault(&self, fault: Fault) {
        let mut state = self.shared.state();
        match fault {
            Fault::Busy => state.refusal = Some("busy"),
            Fault::Refuses => state.refusal = Some("refused"),
            Fault::AppliesNothing => state.applies_nothing = true,
            other => state.next = Some(other),
        }
    }

    pub fn heal(&self) {
        let mut state = self.shared.state();
        (state.refusal, state.next, state.held, state.applies_nothing) = (None, None, None, false);
        state.apply_queue();
        self.shared.changed.notify_all();
    }

    pub fn release(&self) {
        self.shared.state().held = Some(Held::Continues);
        self.shared.changed.notify_all();
    }

    pub fn restart(&self) {
        let mut state = self.shared.state();
        state.queue.clear();
        if state.variant.forgets() {
            state.reported.clear();
        }
    }

    /// Takes a batch from another client.
    pub fn deliver(&self, batch: &str) {
        self.shared.take(batch);
    }

    pub fn pass_height(&self, height: u64) {
        let mut state = self.shared.state();
        state.height = state.height.max(height + 1);
    }

    pub fn applied(&self) -> Vec<String> {
        self.shared.state().applied.clone()
    }

    pub fn arrivals(&self) -> usize {
        self.shared.state().arrivals
    }
}

impl Shared {
    fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap()
    }

    fn serve(&self, mut stream: &TcpStream) -> io::Result<()> {
        let mut line = String::new();
        BufReader::new(stream).read_line(&mut line)?;
        let answer = match line.trim().split_once(' ') {
            Some(("send", batch)) => self.take(batch),
            Some(("status", id)) => Some(self.state().status(id).to_owned()),
            _ => {
                let state = self.state();
                Some(format!("{} {}", state.height, state.identity))
            }
        };
        answer.map_or(Ok(()), |answer| writeln!(stream, "{answer}"))
    }

    /// The answer to a submission. `None`: the connection breaks.
    fn take(&self, batch: &str) -> Option<String> {
        let mut state = self.state();
        state.arrivals += 1;
        if let Some(refusal) = state.refusal {
            return Some(refusal.to_owned());
        }
        let fault = state.next.take();
        match fault {
            Some(Fault::LosesRequest) => return None,
            Some(Fault::HoldsRequest) => state = self.hold(state)?,
            _ => {}
        }
        state.queue.push(batch.to_owned());
        state.apply_queue();
        match fault {
            Some(Fault::LosesAnswer) => return None,
            Some(Fault::HoldsAnswer) => drop(self.hold(state)?),
            _ => {}
        }
        Some("accepted".to_owned())
    }

    /// `None`: the faults ended before it was released.
    fn hold<'a>(&'a self, mut state: MutexGuard<'a, State>) -> Option<MutexGuard<'a, State>> {
        state.held = Some(Held::Waits);
        let waits = |state: &mut State| state.held == Some(Held::Waits);
        let state = self.changed.wait_while(state, waits).unwrap();
        state.held.is_some().then_some(state)
    }
}

impl State {
    fn apply_queue(&mut self) {
        if self.applies_nothing {
            return;
        }
        let mut queue = std::mem::take(&mut self.queue);
        if self.variant == Variant::Reorders {
            queue.reverse();
        }
        for batch in queue {
            self.apply(&batch);
        }
    }

    fn apply(&mut self, batch: &str) {
        self.applied.append(&mut self.again);
        let words: Vec<&str> = batch.split(' ').collect();
        let id = words[0].to_owned();
        let deadline = match words[1..] {
            ["until", height] if self.variant != Variant::IgnoresDeadlines => {
                height.parse().unwrap()
            }
            _ => u64::MAX,
        };
        if words.contains(&"invalid") {
            self.reported.push((id, "invalid"));
        } else if self.height <= deadline
            && (self.variant.applies_again() || self.status(&id) != "committed")
        {
            let waits = self.variant == Variant::AppliesAgainLater && self.applied.contains(&id);
            if waits { &mut self.again } else { &mut self.applied }.push(id.clone());
            self.reported.push((id, "committed"));
        }
    }

    fn status(&self, id: &str) -> &'static str {
        let reported = self.reported.iter().find(|(reported, _)| reported == id);
        let waits = || self.queue.iter().any(|batch| batch.split(' ').next() == Some(id));
        match reported {
            Some((_, status)) => status,
            None if self.variant != Variant::HidesPending && waits() => "pending",
            None => "unknown",
        }
    }
}
