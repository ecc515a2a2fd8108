// Runs against a running service with a worker: CMSJOBS_URL and CMSJOBS_TOKEN
// (admin) name it. Jobs that must not run go into queues that no worker takes.
import assert from "node:assert/strict";
import { randomUUID } from "node:crypto";
import test from "node:test";
import { JobsError, JobsService } from "../dist/index.js";

const baseUrl = process.env.CMSJOBS_URL;
const token = process.env.CMSJOBS_TOKEN;
const options = { skip: baseUrl && token ? false : "CMSJOBS_URL and CMSJOBS_TOKEN name no server" };
if (options.skip && process.env.CI === "true") throw new Error(options.skip);
const jobs = new JobsService({ baseUrl: `${baseUrl}/`, token });

test("a job is enqueued, found, listed, requeued and deleted", options, async () => {
  const run_at = new Date(Date.now() + 3_600_000);
  const made = await jobs.enqueue({ type: "cache.clear", payload: { tags: ["pages"] }, run_at, max_attempts: 4, queue: `life-${randomUUID()}` });
  assert.equal(made.status, "queued");
  assert.equal(made.type, "cache.clear");
  const job = await jobs.get(made.id);
  assert.deepEqual(job.payload, { tags: ["pages"] });
  assert.equal(job.max_attempts, 1); // cache.clear has one attempt: a job may ask for less than its type allows, not for more
  assert.equal(job.detail, "delayed");
  const page = await jobs.list({ type: "cache.clear", status: "queued", limit: 1 });
  assert.equal(page.limit, 1);
  assert.equal(page.items.length, 1);
  assert.ok((await jobs.requeue(made.id)).run_at < run_at.toISOString());
  assert.ok((await jobs.stats()).waiting >= 1);
  await jobs.delete(made.id);
  assert.equal((await jobs.get(made.id)).status, "cancelled");
});

test("a job runs, and its result comes back", options, async () => {
  const { id } = await jobs.enqueue({ type: "cmsjobs.probe", payload: {} });
  const job = await ended(id);
  assert.equal(job.status, "completed");
  assert.deepEqual(job.result, { attempt: 1 });
  assert.ok((await jobs.stats()).completed >= 1);
});

test("a job that fails is requeued and runs again", options, async () => {
  const { id } = await jobs.enqueue({ type: "cmsjobs.probe", payload: { fail: "no luck" }, max_attempts: 1 });
  const failed = await ended(id);
  assert.equal(failed.status, "failed");
  assert.match(failed.error, /no luck/);
  assert.equal((await jobs.requeue(id)).id, id);
  assert.equal((await ended(id)).status, "failed");
  await jobs.delete(id);
  await assert.rejects(jobs.get(id), { status: 404 });
});

/** Waits for a job's end. */
async function ended(id) {
  for (const deadline = Date.now() + 60_000; Date.now() < deadline; await new Promise((done) => setTimeout(done, 20))) {
    const job = await jobs.get(id);
    if (job.status !== "queued" && job.status !== "processing") return job;
  }
  throw new Error(`job ${id} does not end`);
}

test("a job carries its caller's trace", options, async () => {
  const trace = "4bf92f3577b34da6a3ce929d0e0e4736";
  const { id } = await jobs.enqueue({ type: "cmsjobs.probe", queue: `trace-${randomUUID()}` }, { traceparent: `00-${trace}-00f067aa0ba902b7-01` });
  assert.ok((await jobs.get(id)).metadata.traceparent.includes(trace));
});

test("a key makes repeating safe", options, async () => {
  const idempotencyKey = randomUUID();
  const first = await jobs.enqueue({ type: "cache.clear" }, { idempotencyKey });
  const again = await jobs.enqueue({ type: "cache.clear" }, { idempotencyKey });
  assert.equal(again.id, first.id);
  assert.equal(again.existing, true);
  await assert.rejects(jobs.enqueue({ type: "cache.clear", delay: 9 }, { idempotencyKey }), { status: 409 });
});

test("all pages are walked", options, async () => {
  const queue = `walk-${randomUUID()}`;
  const made = new Set();
  for (let i = 0; i < 7; i++) made.add((await jobs.enqueue({ type: "cache.clear", queue })).id);
  const seen = [];
  for await (const job of jobs.all({ queue, limit: 3 })) seen.push(job.id);
  assert.equal(seen.length, 7);
  assert.deepEqual(new Set(seen), made);
});

test("refusals are problems", options, async () => {
  await assert.rejects(jobs.enqueue({ type: "nope" }), (e) => e instanceof JobsError && e.status === 422 && e.problem.errors[0].field === "type");
  await assert.rejects(jobs.get(randomUUID()), { status: 404 });
  await assert.rejects(new JobsService({ baseUrl, token: "cmsj_wrong" }).list(), { status: 401 });
});

test("no server is an error of status 0", options, async () => {
  await assert.rejects(new JobsService({ baseUrl: "http://127.0.0.1:1", token }).stats(), { status: 0 });
  await assert.rejects(jobs.stats({ signal: AbortSignal.abort() }), { status: 0 });
});

test("a browser's session sends its form token", options, async () => {
  const sent = [];
  const fetch = async (url, init) => {
    sent.push([init.method, new URL(url).pathname, init.headers["X-CSRF-Token"], init.credentials]);
    return Response.json(url.endsWith("/session") ? { csrf_token: "form" } : { id: "1" });
  };
  const page = new JobsService({ baseUrl: "https://cms.example", fetch });
  await page.enqueue({ type: "cache.clear" });
  await page.requeue("1");
  assert.deepEqual(sent, [
    ["GET", "/api/v1/session", undefined, "same-origin"],
    ["POST", "/api/v1/jobs", "form", "same-origin"],
    ["POST", "/api/v1/jobs/1/requeue", "form", "same-origin"],
  ]);
});
