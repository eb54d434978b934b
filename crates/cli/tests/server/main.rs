//! The `grid-batch` binary as a process, against simulated ledgers.
#![expect(clippy::unwrap_used, reason = "a test may panic")]

use grid_batch_test_support::process::Binary;

mod harness;

mod backups;
mod batches_of_others;
mod busy_connections;
mod client_commands;
mod command_line;
mod commands_over_http;
mod commands_without_server;
mod configuration_file;
mod connection_poolers;
mod cross_site_requests;
mod dashboard;
mod database_without_answer;
mod demo_faults;
mod demo_output;
mod demo_restarts;
mod described_interface;
mod drop_in;
mod earlier_program;
mod earlier_transactions;
mod equal_json;
mod event_streams;
mod failed_over_clients;
mod faults_are_shown;
mod file_descriptors;
mod frozen_nodes;
mod full_queues;
mod generated_clients;
mod health;
mod hung_nodes;
mod in_flight_window;
mod instances;
mod intake_limits;
mod intake_lists;
mod invalid_configuration;
mod invalid_requests;
mod killed_circuit_nodes;
mod killed_single_nodes;
mod late_arrivals;
mod late_rounds;
mod ledger_identity;
mod ledger_keys;
mod ledger_state;
#[cfg(feature = "evm")]
mod locked_rows;
mod log_lines;
mod memory_limits;
mod metrics;
mod missing_transactions;
mod new_batches;
mod node_outages;
mod operator_commands;
mod operator_decisions;
mod operator_halts;
mod operator_holds;
mod outage_times;
mod pace_of_polling;
mod packages;
mod parts_agree;
mod polls_at_start;
mod polls_without_sockets;
mod private_files;
mod readme;
mod reads;
mod restarts_and_outages;
mod retention;
mod secrets;
mod several_nodes;
mod several_under_way;
#[cfg(feature = "postgres-tls")]
mod shipped;
mod start_failures;
mod stopped_sending;
mod strategy_speed;
mod submission_outcomes;
mod systemd;
mod threads;
mod tls;
mod tokens;
mod top;
#[cfg(feature = "otlp")]
mod traces;
mod tutorial;
mod unknown_services;
mod unreadable_names;
mod unusable_answers;
mod unusable_database;
mod upgrades;
mod waiting_batches;
mod waiting_clients;
mod webhooks;

const GRID_BATCH: Binary = Binary(env!("CARGO_BIN_EXE_grid-batch"));
