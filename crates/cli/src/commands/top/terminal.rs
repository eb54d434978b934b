use std::{
    env,
    io::{self, IsTerminal, Write, stdin, stdout},
    panic,
    process::exit,
    sync::Mutex,
};

use grid_batch_support::lock;
use rustix::termios::{OptionalActions, Termios, tcgetattr, tcsetattr};

use super::{draw::Size, line::Line};
use crate::commands::{failure::Failure, window};

/// The screen of a terminal. Dropping it restores the terminal.
#[derive(Debug)]
pub(super) struct Terminal {
    /// What is on the screen.
    shown: Vec<String>,
    size: Size,
    colours: bool,
}

/// The previous state of the terminal. A panic in any thread reads it when it ends the program.
static BEFORE: Mutex<Option<Termios>> = Mutex::new(None);

/// The alternate screen, no cursor, no wrapped lines, and marks around pasted text.
const ENTER: &str = "\u{1b}[?1049h\u{1b}[?25l\u{1b}[?7l\u{1b}[?2004h\u{1b}[2J";
const LEAVE: &str = "\u{1b}[?2004l\u{1b}[?7h\u{1b}[?25h\u{1b}[?1049l";

/// The exit code of a panic.
const EX_PANIC: i32 = 101;

impl Terminal {
    pub(super) fn open() -> Result<Self, Failure> {
        if !(stdin().is_terminal() && window::can_be_redrawn(&stdout())) {
            return Err(Failure::new(
                "top needs a terminal that can be drawn on; use --once to print the view once, as text",
            ));
        }
        let colours = env::var_os("NO_COLOR").is_none_or(|value| value.is_empty());
        let terminal = Self { shown: Vec::new(), size: Size { width: 0, height: 0 }, colours };
        leave_on_panic();
        enter()?;
        Ok(terminal)
    }

    /// Takes the screen again after another program had it.
    pub(super) fn reopen(&mut self) -> io::Result<()> {
        self.shown.clear();
        enter()
    }

    pub(super) fn size(&self) -> Size {
        let (width, height) = window::size(stdout()).unwrap_or((80, 24));
        Size { width, height }
    }

    /// Writes the lines that differ from those on the screen.
    pub(super) fn show(&mut self, lines: &[Line], size: Size) -> io::Result<()> {
        let escaped: Vec<String> = lines.iter().map(|line| line.escaped(self.colours)).collect();
        let mut output = String::new();
        if size != self.size {
            self.shown.clear();
            self.size = size;
        }
        if self.shown.is_empty() {
            output.push_str("\u{1b}[2J");
        }
        for (row, line) in escaped.iter().enumerate() {
            if self.shown.get(row) != Some(line) {
                output.push_str(&format!("\u{1b}[{};1H{line}\u{1b}[K", row + 1));
            }
        }
        self.shown = escaped;
        let mut stdout = stdout().lock();
        stdout.write_all(output.as_bytes())?;
        stdout.flush()
    }
}

impl Drop for Terminal {
    fn drop(&mut self) {
        leave();
    }
}

fn enter() -> io::Result<()> {
    let mut termios = tcgetattr(stdin())?;
    lock(&BEFORE).get_or_insert_with(|| termios.clone());
    termios.make_raw();
    tcsetattr(stdin(), OptionalActions::Drain, &termios)?;
    write!(stdout(), "{ENTER}")?;
    stdout().flush()
}

/// Restores the terminal once, and ignores errors: the terminal may be gone.
fn leave() {
    let Some(before) = lock(&BEFORE).take() else { return };
    let _ = write!(stdout(), "{LEAVE}");
    let _ = stdout().flush();
    let _ = tcsetattr(stdin(), OptionalActions::Drain, &before);
}

/// A panic in any thread ends the program, with its message on the screen as it was before.
fn leave_on_panic() {
    let print = panic::take_hook();
    panic::set_hook(Box::new(move |panic| {
        leave();
        print(panic);
        exit(EX_PANIC);
    }));
}

#[cfg(test)]
mod tests {
    use std::{process::Command, thread};

    use grid_batch_test_support::tmux::{BEFORE, Tmux};

    use super::*;

    /// Set in a process of its own, which panics.
    const PANICS: &str = "GRID_BATCH_TEST_PANICS";

    #[test]
    fn panic_restores_the_terminal() {
        if env::var_os(PANICS).is_some() {
            panic_in_a_thread();
        }
        let mut command = Command::new(env::current_exe().unwrap());
        let test = "commands::top::terminal::tests::panic_restores_the_terminal";
        command.args(["--exact", test, "--nocapture"]).env(PANICS, "1");
        let tmux = Tmux::start(&command, 120, 40);
        assert_eq!(tmux.wait_for_end(), EX_PANIC);
        let screen = tmux.screen();
        assert!(screen.starts_with(BEFORE), "{screen}");
        assert!(screen.contains("the panic of a test") && !screen.contains("a line"), "{screen}");
        tmux.write("typed afterwards");
        tmux.press(&["Enter"]);
        tmux.wait_for_screen("the echo and the copy", |screen| {
            screen.lines().filter(|line| *line == "typed afterwards").count() == 2
        });
    }

    fn panic_in_a_thread() {
        let mut terminal = Terminal::open().unwrap();
        let size = terminal.size();
        terminal.show(&[Line::plain("a line")], size).unwrap();
        let _ = thread::spawn(|| panic!("the panic of a test")).join();
    }
}
