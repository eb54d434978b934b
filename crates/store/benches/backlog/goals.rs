use std::process::ExitCode;

/// A goal, and the measured value.
#[derive(Default)]
pub struct Goals {
    lines: Vec<(bool, String)>,
}

impl Goals {
    pub fn at_least(&mut self, what: &str, reached: f64, goal: f64) {
        self.lines.push((reached >= goal, format!("{what}: {reached:.2}, at least {goal:.2}")));
    }

    pub fn at_most(&mut self, what: &str, reached: f64, goal: f64) {
        self.lines.push((reached <= goal, format!("{what}: {reached:.2}, at most {goal:.2}")));
    }

    pub fn exit_code(self) -> ExitCode {
        println!();
        for (reached, line) in &self.lines {
            println!("{} {line}", if *reached { "reached" } else { "MISSED " });
        }
        if self.lines.iter().all(|(reached, _)| *reached) {
            ExitCode::SUCCESS
        } else {
            ExitCode::FAILURE
        }
    }
}
