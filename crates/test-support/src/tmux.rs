//! A program in a terminal: a session of tmux.

use std::{
    ffi::OsStr,
    fs,
    path::PathBuf,
    process::{Command, Output},
};

use tempfile::TempDir;

use crate::{
    process::send_signal,
    wait::{wait_for, wait_until},
};

/// A terminal in which a shell has started a program. It ends when the value is dropped.
pub struct Tmux {
    directory: TempDir,
}

/// What the shell prints before it starts the program.
pub const BEFORE: &str = "before the program";

/// What the shell prints after the program, with its exit code.
pub const ENDED: &str = "the program has ended:";

impl Tmux {
    /// Starts a program in a terminal of this size.
    ///
    /// # Panics
    ///
    /// If tmux is not installed.
    #[track_caller]
    pub fn start(command: &Command, width: u16, height: u16) -> Self {
        let tmux = Self { directory: tempfile::tempdir().unwrap() };
        let variables = command.get_envs().filter_map(|(name, value)| Some((name, value?)));
        let variables = variables.map(|(name, value)| format!("{}={}", text(name), quoted(value)));
        let words = [command.get_program()].into_iter().chain(command.get_args()).map(quoted);
        let program: Vec<String> = variables.chain(words).collect();
        // The shell outlives Ctrl-C, and the terminal stays open after the program, so that a test can look at it.
        let script = format!(
            "trap : INT\necho '{BEFORE}'\n\
             sh -c 'echo $$ >\"$0\" && exec env \"$@\"' {} {}\n\
             echo '{ENDED}' $?\nexec cat\n",
            quoted(tmux.process_file().as_os_str()),
            program.join(" "),
        );
        let file = tmux.directory.path().join("script");
        fs::write(&file, script).unwrap();
        let (width, height) = (width.to_string(), height.to_string());
        let shell = format!("sh {}", file.display());
        tmux.run(&["new-session", "-d", "-x", &width, "-y", &height, &shell]);
        tmux
    }

    /// What is on the screen, as lines without spaces at their ends.
    pub fn screen(&self) -> String {
        String::from_utf8(self.run(&["capture-pane", "-p"]).stdout).unwrap()
    }

    /// What is on the screen, with the escape sequences of its colours.
    pub fn styled_screen(&self) -> String {
        String::from_utf8(self.run(&["capture-pane", "-p", "-e"]).stdout).unwrap()
    }

    /// What is on the screen and what was scrolled off it. A line that the terminal has wrapped is two lines.
    pub fn history(&self) -> String {
        String::from_utf8(self.run(&["capture-pane", "-p", "-S", "-"]).stdout).unwrap()
    }

    /// Waits until the screen has the text. Returns the screen.
    #[track_caller]
    pub fn wait_for_text(&self, text: &str) -> String {
        self.wait_for_screen(text, |screen| screen.contains(text))
    }

    /// Waits until the condition holds for the screen. Returns the screen.
    #[track_caller]
    pub fn wait_for_screen(&self, description: &str, condition: impl Fn(&str) -> bool) -> String {
        let mut screen = String::new();
        let mut holds = || {
            screen = self.screen();
            condition(&screen)
        };
        let description = format!("the screen shows: {description}");
        let guard = ScreenOnPanic(self);
        wait_until(&description, &mut holds);
        drop(guard);
        screen
    }

    /// Presses keys that have names, such as `Enter` or `C-c`.
    pub fn press(&self, keys: &[&str]) {
        self.run(&[&["send-keys"], keys].concat());
    }

    /// Types a text.
    pub fn write(&self, text: &str) {
        self.run(&["send-keys", "-l", text]);
    }

    /// Changes the size of the terminal.
    pub fn resize(&self, width: u16, height: u16) {
        let (width, height) = (width.to_string(), height.to_string());
        self.run(&["resize-window", "-x", &width, "-y", &height]);
    }

    /// Sends a signal, such as `TERM`, to the program.
    pub fn signal(&self, signal: &str) {
        send_signal(self.process_id(), signal);
    }

    /// The process id of the program.
    pub fn process_id(&self) -> u32 {
        wait_for("the program has a process id", || {
            fs::read_to_string(self.process_file()).ok()?.trim().parse().ok()
        })
    }

    /// Waits until the program has ended. Returns its exit code.
    #[track_caller]
    pub fn wait_for_end(&self) -> i32 {
        let screen = self.wait_for_text(ENDED);
        let (_, code) = screen.rsplit_once(ENDED).unwrap();
        code.lines().next().unwrap().trim().parse().unwrap()
    }

    fn process_file(&self) -> PathBuf {
        self.directory.path().join("process")
    }

    fn command(&self, arguments: &[&str]) -> Command {
        let mut command = Command::new("tmux");
        command
            .args(["-u", "-f", "/dev/null", "-S"])
            .arg(self.directory.path().join("socket"))
            .args(arguments)
            .env_remove("TMUX")
            .env_remove("NO_COLOR")
            .env("LC_ALL", "C.UTF-8");
        command
    }

    #[track_caller]
    fn run(&self, arguments: &[&str]) -> Output {
        let output = self.command(arguments).output();
        let output = output.expect("the tests need tmux on the PATH; scripts/test installs it");
        assert!(output.status.success(), "{arguments:?}: {output:?}");
        output
    }
}

impl Drop for Tmux {
    fn drop(&mut self) {
        // It fails when tmux has already ended.
        let _ = self.command(&["kill-server"]).output();
    }
}

/// Prints the screen of a test that fails.
struct ScreenOnPanic<'a>(&'a Tmux);

impl Drop for ScreenOnPanic<'_> {
    fn drop(&mut self) {
        if std::thread::panicking() {
            let screen = self.0.command(&["capture-pane", "-p"]).output();
            let screen = screen.map(|output| output.stdout).unwrap_or_default();
            eprintln!("the screen:\n{}", String::from_utf8_lossy(&screen));
        }
    }
}

fn quoted(word: &OsStr) -> String {
    format!("'{}'", text(word).replace('\'', r"'\''"))
}

fn text(word: &OsStr) -> &str {
    word.to_str().expect("the words of the command are UTF-8")
}
