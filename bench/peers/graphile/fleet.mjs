// One of many processes of graphile-worker, for bench/fleet. usage: node fleet.mjs DSN
// fill JOBS, or node fleet.mjs DSN work CONCURRENCY SIZE, in a folder where
// graphile-worker is installed. SIZE is that of the local queue, 0 is none.
// A worker says that it is ready, works from the moment that a line comes on its
// input until that ends, and says how many microseconds of processor time it used.
import { createRequire } from "node:module";
import { createInterface } from "node:readline";
import { pathToFileURL } from "node:url";

const require = createRequire(pathToFileURL(process.cwd() + "/"));
const { run, makeWorkerUtils, Logger } = require("graphile-worker");
const [dsn, what] = process.argv.slice(2);
const [first, second] = process.argv.slice(4).map(Number);
const logger = new Logger(() => () => {});

async function fill(jobs) {
  const utils = await makeWorkerUtils({ connectionString: dsn, logger });
  await utils.migrate();
  await utils.withPgClient((client) => client.query("TRUNCATE graphile_worker._private_jobs"));
  for (let left = jobs; left > 0; left -= 1000) {
    await utils.addJobs(Array.from({ length: Math.min(left, 1000) }, () => ({ identifier: "noop", payload: {} })));
  }
  await utils.release();
}

async function work(concurrency, size) {
  const lines = createInterface({ input: process.stdin });
  const begin = new Promise((resolve) => lines.once("line", resolve));
  const end = new Promise((resolve) => lines.once("close", resolve));
  console.log("ready");
  await begin;
  const before = process.cpuUsage();
  const runner = await run({ connectionString: dsn, logger, noHandleSignals: true, concurrency, maxPoolSize: Math.max(concurrency + 1, 10), taskList: { noop: async () => {} },
    preset: { worker: { concurrentJobs: concurrency, completeJobBatchDelay: 0, failJobBatchDelay: 0, ...(size > 0 && { localQueue: { size, refetchDelay: { durationMs: 10 } } }) } } });
  await end;
  await runner.stop();
  const used = process.cpuUsage(before);
  console.log(used.user + used.system);
}

await (what === "fill" ? fill(first) : work(first, second));
process.exit(0);
