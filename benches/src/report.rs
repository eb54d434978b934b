//! What a run prints.

use std::{fmt::Write, time::Duration};

use serde_json::{Value, json};

use crate::{
    ceilings::PlainWork,
    measurement::{Measurement, Percentiles},
    run_options::{LedgerProgram, RunOptions},
};

/// How many statements are listed.
const STATEMENTS: usize = 20;

/// Lines for people.
pub fn text(options: &RunOptions, run: &Measurement) -> String {
    let mut text = String::new();
    let mut line = |name: &str, value: String| {
        let _ = writeln!(text, "{name:<34} {value}");
    };
    let events = if options.events { "events" } else { "no events" };
    line(
        "run",
        format!(
            "{} {}{} {} services, {} batches of {} B, {} connections, {} a request, {events}",
            options.database.name(),
            options.ledger.name(),
            if options.ledger_program == LedgerProgram::Simulator { " simulator" } else { "" },
            options.services,
            options.batches,
            options.payload,
            options.connections,
            options.batches_per_request,
        ),
    );
    line("batches/s", format!("{:.0}", run.rate()));
    line("intake alone, batches/s", format!("{:.0}", rate(run, run.intake_time)));
    line("verifying a batch", milliseconds(run.verification));
    line("server CPU a batch", cpu(run, run.server_cpu));
    if let Some(database) = run.database.cpu {
        line("database CPU a batch", cpu(run, database));
    }
    line("ledger CPU a batch", cpu(run, run.ledger_cpu));
    line("client CPU a batch", cpu(run, run.client_cpu));
    let per_batch = |total: u64| format!("{:.3}", run.per_batch(total as f64));
    line("commits a batch", per_batch(run.database.commits));
    let counts =
        [("statements a batch", run.database.statements), ("rows a batch", run.database.rows)];
    for (name, count) in counts {
        if let Some(count) = count {
            line(name, per_batch(count));
        }
    }
    line("log bytes a batch", format!("{:.0}", run.per_batch(run.database.log_bytes as f64)));
    if let Some([posts, statuses]) = run.ledger_requests {
        let of = |count: usize| format!("{:.2}", run.per_batch(count as f64));
        line("POSTs, status requests a batch", format!("{}, {}", of(posts), of(statuses)));
    }
    line("202 (50 %, 99 %, worst)", percentiles(run.latency));
    // Unknown beside the simulator, and if no service had two batches.
    if run.turnaround.worst > Duration::ZERO {
        line("commit to next POST", percentiles(run.turnaround));
    }
    if run.ledger_delay.worst > Duration::ZERO {
        line("ledger's own delay", percentiles(run.ledger_delay));
    }
    if let Some(out_of_order) = run.out_of_order {
        line("out of order", out_of_order.to_string());
    }
    line("peak memory", format!("{:.0} MB", run.peak_memory as f64 / 1e6));
    line("refused requests", run.refused.to_string());
    if let Some(idle) = run.idle {
        line("CPU when idle", format!("{:.2} % of a core", idle * 100.0));
    }
    if let Some(ceilings) = run.ceilings {
        let plain = |work: PlainWork| {
            let verifications = work.cpu.as_secs_f64() / run.verification.as_secs_f64();
            format!("{:.0}; {verifications:.2} verifications each", work.rate)
        };
        line("plain inserts, batches/s", plain(ceilings.inserts));
        line("verified inserts, batches/s", plain(ceilings.verified_inserts));
        line("plain POSTs, batches/s", plain(ceilings.posts));
        line("plain status requests/s", plain(ceilings.status_requests));
        line("end to end / slower ceiling", format!("{:.2}", run.rate() / ceilings.slower()));
    }
    threads(&mut text, run);
    statements(&mut text, run);
    text
}

fn threads(text: &mut String, run: &Measurement) {
    let mut threads: Vec<_> = run.server_threads.iter().collect();
    threads.sort_by_key(|(_, time)| std::cmp::Reverse(**time));
    text.push_str("server threads:\n");
    for (name, time) in threads.into_iter().filter(|(_, time)| time.as_millis() > 0) {
        let _ = writeln!(text, "  {name:<32} {}", cpu(run, *time));
    }
}

fn statements(text: &mut String, run: &Measurement) {
    if !run.statements.is_empty() {
        text.push_str("statements a batch, rows a call, ms a call:\n");
    }
    for statement in run.statements.iter().take(STATEMENTS) {
        let (calls, rows) = (statement.calls as f64, statement.rows as f64);
        let start: String = statement.text.split_whitespace().collect::<Vec<_>>().join(" ");
        let start: String = start.chars().take(90).collect();
        let _ = writeln!(
            text,
            "  {:>8.3} {:>8.1} {:>8.3}  {start}",
            run.per_batch(calls),
            rows / calls,
            statement.milliseconds / calls
        );
    }
}

fn rate(run: &Measurement, time: Duration) -> f64 {
    run.batches as f64 / time.as_secs_f64()
}

/// Such as `0.512 ms (6.4 verifications)`.
fn cpu(run: &Measurement, total: Duration) -> String {
    let per_batch = Duration::from_secs_f64(run.per_batch(total.as_secs_f64()));
    format!("{} ({:.2} verifications)", milliseconds(per_batch), run.in_verifications(total))
}

fn milliseconds(time: Duration) -> String {
    format!("{:.3} ms", time.as_secs_f64() * 1_000.0)
}

fn percentiles(times: Percentiles) -> String {
    let times = [times.median, times.percentile_99, times.worst];
    times.map(|time| format!("{:.1}", time.as_secs_f64() * 1_000.0)).join(" / ") + " ms"
}

/// One JSON object.
pub fn json(options: &RunOptions, run: &Measurement) -> Value {
    let percentiles = |times: Percentiles| {
        let seconds = [times.median, times.percentile_99, times.worst];
        json!(seconds.map(|time| time.as_secs_f64() * 1_000.0))
    };
    let per_batch = |total: u64| run.per_batch(total as f64);
    json!({
        "database": options.database.name(),
        "ledger": options.ledger.name(),
        "services": options.services,
        "batches": options.batches,
        "payload": options.payload,
        "connections": options.connections,
        "batches_per_request": options.batches_per_request,
        "instances": options.instances,
        "events": options.events,
        "batches_per_second": run.rate(),
        "intake_batches_per_second": rate(run, run.intake_time),
        "verification_ms": run.verification.as_secs_f64() * 1_000.0,
        "server_cpu_in_verifications": run.in_verifications(run.server_cpu),
        "database_cpu_in_verifications": run.database.cpu.map(|cpu| run.in_verifications(cpu)),
        "ledger_cpu_in_verifications": run.in_verifications(run.ledger_cpu),
        "client_cpu_in_verifications": run.in_verifications(run.client_cpu),
        "commits_per_batch": per_batch(run.database.commits),
        "statements_per_batch": run.database.statements.map(per_batch),
        "rows_per_batch": run.database.rows.map(per_batch),
        "log_bytes_per_batch": per_batch(run.database.log_bytes),
        "posts_and_status_requests_per_batch":
            run.ledger_requests.map(|counts| counts.map(|count| run.per_batch(count as f64))),
        "simulator": options.ledger_program == LedgerProgram::Simulator,
        "delay_ms": options.delay.as_millis() as u64,
        "latency_ms": percentiles(run.latency),
        "turnaround_ms": percentiles(run.turnaround),
        "ledger_delay_ms": percentiles(run.ledger_delay),
        "out_of_order": run.out_of_order,
        "peak_memory_bytes": run.peak_memory,
        "refused_requests": run.refused,
        "idle_cpu": run.idle,
        "plain_inserts_per_second": run.ceilings.map(|ceilings| ceilings.inserts.rate),
        "verified_inserts_per_second": run.ceilings.map(|ceilings| ceilings.verified_inserts.rate),
        "plain_posts_per_second": run.ceilings.map(|ceilings| ceilings.posts.rate),
        "plain_status_requests_per_second": run.ceilings.map(|ceilings| ceilings.status_requests.rate),
        "of_slower_ceiling": run.ceilings.map(|ceilings| run.rate() / ceilings.slower()),
    })
}
