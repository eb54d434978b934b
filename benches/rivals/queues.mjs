// Passes units over keys through a job queue that keeps order per key, and prints the result as JSON.
//
// usage: node queues.mjs QUEUE URL LIMIT_SECONDS <UNITS
//
// Standard input has the key of each unit, in the order of adding. A unit does nothing but check that it follows
// the unit before it of the same key. A queue that does not end within the limit is stopped, even in a statement.
import { readFileSync } from "node:fs";
import { performance } from "node:perf_hooks";
import { setImmediate } from "node:timers/promises";
import { Logger, makeWorkerUtils, run } from "graphile-worker";
import pg from "pg";
import { PgBoss } from "pg-boss";

const [queue, url, limit] = process.argv.slice(2);
const positions = new Map();
const units = readFileSync(0, "utf8").trimEnd().split("\n").map((key, number) => {
  const position = positions.get(key) ?? 0;
  positions.set(key, position + 1);
  return { key, position, number };
});

/** Adds the units in groups, updates the statistics of the tables, and starts the clock of the work. */
async function add(addGroup) {
  const started = performance.now();
  for (let first = 0; first < units.length; first += 1000) {
    await addGroup(units.slice(first, first + 1000));
  }
  const added = performance.now();
  const client = new pg.Client(url);
  await client.connect();
  await client.query("vacuum analyze");
  await client.end();
  return new Work((added - started) / 1000);
}

/** Counts the units that are done, and those that did not wait for the one before them. */
class Work {
  next = new Map();
  running = new Set();
  done = 0;
  outOfOrder = 0;
  started = performance.now();

  constructor(addingSeconds) {
    this.addingSeconds = addingSeconds;
    setTimeout(() => this.end(), limit * 1000);
  }

  async take({ key, position }) {
    if (this.running.has(key) || (this.next.get(key) ?? 0) !== position) this.outOfOrder += 1;
    this.running.add(key);
    await setImmediate();
    this.running.delete(key);
    this.next.set(key, position + 1);
    this.done += 1;
    if (this.done === units.length) this.end();
  }

  end() {
    console.log(JSON.stringify({
      done: this.done, out_of_order: this.outOfOrder, adding_seconds: this.addingSeconds,
      working_seconds: (performance.now() - this.started) / 1000,
    }));
    process.exit(0);
  }
}

async function graphileWorker() {
  const silent = { logger: new Logger(() => () => {}) };
  const utils = await makeWorkerUtils({ connectionString: url, ...silent });
  await utils.migrate();
  const work = await add((group) => utils.addJobs(group.map((unit) => ({
    identifier: "unit", payload: unit, queueName: unit.key,
  }))));
  // Without its local queue, which is faster, but runs the units of a key at the same time.
  await run({
    connectionString: url, concurrency: 20, maxPoolSize: 20, noHandleSignals: true, ...silent,
    preset: { worker: { completeJobBatchDelay: 250 } }, taskList: { unit: (unit) => work.take(unit) },
  });
}

async function pgBoss() {
  const boss = new PgBoss({ connectionString: url, supervise: false, schedule: false });
  boss.on("error", (error) => console.error(error.message));
  await boss.start();
  await boss.createQueue("unit", { policy: "key_strict_fifo" });
  // Units that were added in one statement are ordered by their ids.
  const id = (number) => `00000000-0000-4000-8000-${String(number).padStart(12, "0")}`;
  const work = await add((group) => boss.insert("unit", group.map((unit) => ({
    id: id(unit.number), singletonKey: unit.key, data: unit,
  }))));
  for (let batchSize = 500; ;) {
    const jobs = await boss.fetch("unit", { batchSize });
    // A fetch that has two units of a key fails, and its answer is empty.
    if (jobs.length === 0) batchSize = Math.max(1, batchSize >> 1);
    await Promise.all(jobs.map((job) => work.take(job.data)));
    if (jobs.length > 0) await boss.complete("unit", jobs.map((job) => job.id));
  }
}

await { "graphile-worker": graphileWorker, "pg-boss": pgBoss }[queue]();
