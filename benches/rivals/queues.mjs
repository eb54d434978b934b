// Passes units over keys through job queues that keep order per key, and prints one JSON line for each.
//
// usage: node queues.mjs URL UNITS KEYS LIMIT_SECONDS
//
// A unit does nothing but check that it follows the unit before it of the same key. A queue that does not
// end within the limit is stopped; its rate is that of the units until then.
import { performance } from "node:perf_hooks";
import { Logger, makeWorkerUtils, run } from "graphile-worker";
import { PgBoss } from "pg-boss";

const [url, units, keys, limit] = [process.argv[2], ...process.argv.slice(3).map(Number)];
const unit = (number) => ({ key: `key-${number % keys}`, position: Math.floor(number / keys) });
const numbers = Array.from({ length: units }, (_, number) => number);

/** Counts units, and those that are out of order. */
class OrderCheck {
  constructor() {
    this.next = new Map();
    this.done = 0;
    this.outOfOrder = 0;
  }
  take({ key, position }) {
    if ((this.next.get(key) ?? 0) !== position) this.outOfOrder += 1;
    this.next.set(key, position + 1);
    this.done += 1;
  }
}

const seconds = (since) => (performance.now() - since) / 1000;

const report = (name, check, adding, working) =>
  console.log(JSON.stringify({
    name, done: check.done, out_of_order: check.outOfOrder, adding_seconds: adding,
    working_seconds: working,
  }));

async function graphileWorker() {
  const silent = { logger: new Logger(() => () => {}) };
  const utils = await makeWorkerUtils({ connectionString: url, ...silent });
  await utils.migrate();
  const started = performance.now();
  for (let first = 0; first < units; first += 1000) {
    await utils.addJobs(numbers.slice(first, first + 1000).map((number) => ({
      identifier: "unit", payload: unit(number), queueName: unit(number).key,
    })));
  }
  const adding = seconds(started);
  const check = new OrderCheck();
  let end;
  const ended = new Promise((resolve) => { end = resolve; });
  const timer = setTimeout(end, limit * 1000);
  const work = performance.now();
  const runner = await run({
    connectionString: url, concurrency: 20, maxPoolSize: 20, noHandleSignals: true, ...silent,
    taskList: { unit: async (payload) => {
      check.take(payload);
      if (check.done === units) end();
    } },
  });
  await ended;
  const working = seconds(work);
  clearTimeout(timer);
  report("graphile-worker 0.17.3, a queue for each key", check, adding, working);
  await runner.stop();
  await utils.release();
}

async function pgBoss() {
  const boss = new PgBoss({ connectionString: url, supervise: false, schedule: false });
  boss.on("error", (error) => console.error(error.message));
  await boss.start();
  await boss.createQueue("unit", { policy: "key_strict_fifo" });
  const started = performance.now();
  for (let first = 0; first < units; first += 1000) {
    await boss.insert("unit", numbers.slice(first, first + 1000).map((number) => ({
      singletonKey: unit(number).key, data: unit(number),
    })));
  }
  const adding = seconds(started);
  const check = new OrderCheck();
  const work = performance.now();
  while (check.done < units && seconds(work) < limit) {
    const jobs = await boss.fetch("unit", { batchSize: 500 });
    // Two units of a key at the same time are not in order either.
    check.outOfOrder += jobs.length - new Set(jobs.map((job) => job.data.key)).size;
    jobs.forEach((job) => check.take(job.data));
    if (jobs.length > 0) await boss.complete("unit", jobs.map((job) => job.id));
  }
  report("pg-boss 12.15.0, key_strict_fifo, 500 a fetch", check, adding, seconds(work));
  await boss.stop({ graceful: false });
}

await graphileWorker();
await pgBoss();
process.exit(0);
