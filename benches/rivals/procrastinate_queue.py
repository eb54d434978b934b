"""Passes units over keys through procrastinate, with a lock for each key, and prints the result as JSON.

usage: python procrastinate_queue.py NAME URL LIMIT_SECONDS <UNITS

The input, the units, the limit and the result are those of queues.mjs.
"""

import asyncio
import json
import logging
import os
import sys
import time
from collections import defaultdict

import psycopg
from procrastinate import App, PsycopgConnector

WORKERS, CONCURRENCY = 4, 5

url, limit = sys.argv[2], float(sys.argv[3])
keys = sys.stdin.read().split()
# It warns of tasks in the main module, which other processes could not import.
logging.getLogger("procrastinate").setLevel(logging.ERROR)
app = App(connector=PsycopgConnector(conninfo=url))


class Work:
    """Counts the units that are done, and those that did not wait for the one before them."""

    def __init__(self, adding_seconds):
        self.next, self.running = defaultdict(int), set()
        self.done = self.out_of_order = 0
        self.adding_seconds, self.started = adding_seconds, time.perf_counter()
        asyncio.get_running_loop().call_later(limit, self.end)

    async def take(self, key, position):
        self.out_of_order += key in self.running or self.next[key] != position
        self.running.add(key)
        await asyncio.sleep(0)
        self.running.discard(key)
        self.next[key] = position + 1
        self.done += 1
        if self.done == len(keys):
            self.end()

    def end(self):
        print(json.dumps({
            "done": self.done, "out_of_order": self.out_of_order, "adding_seconds": self.adding_seconds,
            "working_seconds": time.perf_counter() - self.started,
        }), flush=True)
        os._exit(0)


@app.task
async def unit(key, position):
    await work.take(key, position)


async def add():
    positions = defaultdict(int)
    started = time.perf_counter()
    for first in range(0, len(keys), 1000):
        jobs = []
        for key in keys[first:first + 1000]:
            jobs.append(unit.configure(lock=key).make_new_job(key=key, position=positions[key]))
            positions[key] += 1
        await app.job_manager.batch_defer_jobs_async(jobs)
    adding_seconds = time.perf_counter() - started
    async with await psycopg.AsyncConnection.connect(url, autocommit=True) as connection:
        await connection.execute("vacuum analyze")
    return Work(adding_seconds)


async def main():
    global work
    async with app.open_async():
        await app.schema_manager.apply_schema_async()
        work = await add()
        workers = (app.run_worker_async(concurrency=CONCURRENCY) for _ in range(WORKERS))
        await asyncio.gather(*workers)


asyncio.run(main())
