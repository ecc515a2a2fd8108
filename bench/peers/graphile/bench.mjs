// Measures graphile-worker (https://worker.graphile.org) doing what bench/queue
// measures of cmsjobs. usage: node bench.mjs DSN JOBS, in a folder where
// graphile-worker is installed. It prints one JSON object a line.
import { createRequire } from "node:module";
import { pathToFileURL } from "node:url";

const require = createRequire(pathToFileURL(process.cwd() + "/"));
const { run, makeWorkerUtils, Logger } = require("graphile-worker");
const [dsn, count] = [process.argv[2], Number(process.argv[3])];
const logger = new Logger(() => () => {});

const say = (line) => console.log(JSON.stringify(line));

async function measure(name, jobs, work) {
  const cpu = process.cpuUsage(), begun = performance.now();
  await work();
  const used = process.cpuUsage(cpu);
  say({ name, jobs, seconds: (performance.now() - begun) / 1000, clientCpu: (used.user + used.system) / 1e6 });
}

const utils = await makeWorkerUtils({ connectionString: dsn, logger });
await utils.migrate();

async function fill(jobs) {
  for (let left = jobs; left > 0; left -= 1000) {
    await utils.addJobs(Array.from({ length: Math.min(left, 1000) }, () => ({ identifier: "noop", payload: {} })));
  }
}

async function drain(name, jobs, options) {
  let done = 0, finish;
  const all = new Promise((resolve) => { finish = resolve; });
  await measure(name, jobs, async () => {
    const runner = await run({ connectionString: dsn, logger, noHandleSignals: true, ...options, taskList: { noop: async () => { if (++done === jobs) finish(); } } });
    await all;
    await runner.stop(); // waits until the last completions are written
  });
}

await measure("enqueue 1", 1000, async () => { for (let i = 0; i < 1000; i++) await utils.addJob("noop", {}); });
await measure("enqueue 10", 2000, () => Promise.all(Array.from({ length: 10 }, async () => { for (let i = 0; i < 200; i++) await utils.addJob("noop", {}); })));
await measure("bulk", count - 3000, () => fill(count - 3000));
const tuned = { concurrency: 24, maxPoolSize: 25, preset: { worker: { concurrentJobs: 24, localQueue: { size: 500 }, completeJobBatchDelay: 0, failJobBatchDelay: 0 } } };
await drain("drain tuned", count, tuned);
await fill(5 * count);
await drain("drain tuned, 5 times as many", 5 * count, tuned);
await fill(2000);
await drain("drain default 10", 2000, { concurrency: 10 });
await utils.release();
process.exit(0);
