import { JobsError, type JobsOptions } from "./index.js";
import type { Problem } from "./types.js";

/** A type that a program runs. Lengths are in seconds. */
export interface WorkerType {
  /** area.verb, in small letters */
  type: string;
  /** what it does, for people */
  title?: string;
  /** the default queue if absent */
  queue?: string;
  /** the payload's JSON Schema: checked when a job is enqueued, and shown as a form */
  schema?: object;
  /** starts allowed; 3 if absent */
  max_attempts?: number;
  /** of a run; 300 if absent */
  timeout?: number;
  /** waits after failed attempts */
  backoff?: number[];
  /** how many run at once in the whole fleet */
  limit?: number;
  /** how many begin in each length of time, in the whole fleet: ["10/s", "500/h"] */
  rate?: string[];
}

export interface WorkerOptions extends JobsOptions {
  /** what the program is and where it runs: "shop@web-1" */
  name: string;
  version?: string;
  /** jobs at once, 1 to 100; 1 if absent */
  slots?: number;
  /** how long the worker may be silent before its jobs are another's: 5 to 600 s, 30 if absent */
  lease?: number;
  /** hears of what goes wrong and is tried again */
  onError?: (error: unknown) => void;
}

/** A job that runs now. */
export interface RunningJob<Payload = Record<string, unknown>> {
  id: string;
  type: string;
  queue: string;
  payload: Payload;
  metadata: Record<string, unknown>;
  /** 1 is the first */
  attempt: number;
  max_attempts: number;
  /** is aborted when the job is cancelled, takes too long, or is another worker's: stop then */
  signal: AbortSignal;
  /** how far it is; shown live */
  progress(done: number, total?: number, note?: string): void;
  /** a line for people, beside the job */
  log(line: string): void;
}

/** Runs a job. What it returns is the job's result; what it throws fails the run. */
export type Handler<Payload> = (job: RunningJob<Payload>) => unknown | Promise<unknown>;

/** Fails a job for good: repeating would not fix it. */
export class PermanentError extends Error {}

/** Puts a job back for so many seconds; the attempt does not count. */
export class ReleaseError extends Error {
  readonly delay: number;
  constructor(message: string, delay = 0) {
    super(message);
    this.delay = delay;
  }
}

interface Claimed {
  lease: string;
  id: string;
  type: string;
  queue: string;
  payload: Record<string, unknown>;
  metadata: Record<string, unknown>;
  attempt: number;
  max_attempts: number;
}

interface Running {
  stop: AbortController;
  progress?: { done: number; total?: number; note?: string } | undefined;
  lines: string[];
}

/**
 * Runs jobs of the program's own types, as the service runs its own: with
 * attempts, time limits, history, progress and log lines. Handlers may run more
 * than once for one job, after a crash: make them repeatable.
 */
export class JobsWorker {
  readonly #options: WorkerOptions;
  readonly #base: string;
  readonly #types = new Map<string, { type: WorkerType; handler: Handler<never> }>();
  readonly #running = new Map<string, Running>();
  readonly #ends = new Set<Promise<void>>();
  #session = "";

  constructor(options: WorkerOptions) {
    this.#options = options;
    this.#base = options.baseUrl.replace(/\/+$/, "");
  }

  /** Lets this worker run a type. Call it before run. */
  handle<Payload = Record<string, unknown>>(type: WorkerType, handler: Handler<Payload>): this {
    this.#types.set(type.type, { type, handler: handler as Handler<never> });
    return this;
  }

  /** Works until the signal is aborted or the worker is stopped from the page; then it finishes what runs. */
  async run(signal?: AbortSignal): Promise<void> {
    for (let wait = 500; !signal?.aborted; ) {
      try {
        await this.#work(signal);
        return;
      } catch (error) {
        if (error instanceof JobsError && error.status >= 400 && error.status < 500 && error.status !== 404 && error.status !== 409 && error.status !== 429) throw error;
        this.#options.onError?.(error);
      }
      await sleep(wait, signal);
      wait = Math.min(2 * wait, 10_000);
    }
  }

  /** One session: from the registration until it ends. */
  async #work(signal?: AbortSignal): Promise<void> {
    const slots = this.#options.slots ?? 1;
    const types = [...this.#types.values()].map((x) => x.type);
    const { name, version, lease } = this.#options;
    const session = await this.#ask<{ id: string; lease: number; heartbeat: number }>("", { name, slots, types, ...(version && { version }), ...(lease && { lease }) });
    this.#session = `/${session.id}`;
    const over = new AbortController();
    let ends: unknown;
    const end = (error?: unknown) => {
      ends ??= error;
      over.abort();
    };
    const forget = listen(signal, () => end());
    const beats = this.#beatAll(session.heartbeat * 1000, session.lease * 1000, over.signal, end);
    try {
      while (!over.signal.aborted) {
        const free = slots - this.#running.size;
        if (free === 0) {
          await first(this.#ends, over.signal);
          continue;
        }
        try {
          const answer = await this.#ask<{ jobs: Claimed[]; stop: boolean }>("/claim", { limit: free, wait: 15 }, over.signal);
          for (const job of answer.jobs) this.#start(job);
          if (answer.stop) end();
        } catch (error) {
          if (over.signal.aborted || !passing(error)) throw error;
          this.#options.onError?.(error);
          await sleep(1000, over.signal); // the heartbeats say whether the session still lives
        }
      }
    } catch (error) {
      if (!over.signal.aborted) end(error);
    }
    if (ends !== undefined) for (const r of this.#running.values()) r.stop.abort(ends); // the session is gone: so are its jobs
    await Promise.all(this.#ends);
    over.abort();
    await beats;
    forget();
    if (ends !== undefined) throw ends;
    await this.#ask("", undefined, undefined, "DELETE").catch(() => {}); // it ends by itself, too
  }

  /** Runs one job and says how it ended. */
  #start(claimed: Claimed): void {
    const { lease, ...rest } = claimed;
    const running: Running = { stop: new AbortController(), lines: [] };
    this.#running.set(lease, running);
    const job = {
      ...rest,
      signal: running.stop.signal,
      progress: (done: number, total?: number, note?: string) => {
        running.progress = { done, ...(total !== undefined && { total }), ...(note !== undefined && { note }) };
      },
      log: (line: string) => {
        if (running.lines.length < 500) running.lines.push(line);
      },
    };
    const one = (async () => {
      let path = "/complete";
      let body: Record<string, unknown>;
      try {
        const handler = this.#types.get(job.type)!.handler as Handler<Record<string, unknown>>;
        const result = await handler(job);
        body = result === undefined ? {} : { result };
      } catch (error) {
        const text = error instanceof Error ? error.stack ?? error.message : String(error);
        if (error instanceof ReleaseError) [path, body] = ["/release", { delay: error.delay, why: error.message }];
        else [path, body] = ["/fail", { error: text, permanent: error instanceof PermanentError }];
      }
      await this.#beat([lease]).catch(() => {}); // its last lines and progress
      await this.#sayEnd(path, { lease, ...body });
    })()
      .catch((error) => this.#options.onError?.(error))
      .finally(() => {
        this.#running.delete(lease);
        this.#ends.delete(one);
      });
    this.#ends.add(one);
  }

  /** Says an end until the service has it, or has refused it: saying it twice is harmless. */
  async #sayEnd(path: string, body: object): Promise<void> {
    for (let wait = 200, tries = 0; ; tries++) {
      try {
        return await this.#ask<void>(path, body);
      } catch (error) {
        if (!passing(error) || tries >= 10) throw error;
      }
      await sleep(wait);
      wait = Math.min(2 * wait, 5000);
    }
  }

  /** Says that the worker lives. Without an answer for the length of the lease its jobs are another's. */
  async #beatAll(every: number, lease: number, over: AbortSignal, end: (error: unknown) => void): Promise<void> {
    let heard = Date.now();
    while (!over.aborted || this.#running.size > 0) {
      await Promise.race([sleep(every, over.aborted ? undefined : over), ...(over.aborted ? this.#ends : [])]);
      try {
        if (await this.#beat([...this.#running.keys()])) end(undefined);
        heard = Date.now();
      } catch (error) {
        const gone = error instanceof JobsError && error.status === 404;
        if (gone || Date.now() - heard > lease) {
          for (const r of this.#running.values()) r.stop.abort(error);
          return end(error);
        }
      }
    }
  }

  /** One heartbeat for these jobs; true asks the worker to stop. */
  async #beat(leases: string[]): Promise<boolean> {
    const taken = new Map<string, string[]>();
    const jobs = leases.flatMap((lease) => {
      const r = this.#running.get(lease);
      if (r === undefined) return [];
      const log = r.lines.splice(0);
      taken.set(lease, log);
      return [{ lease, log, ...(r.progress !== undefined && { progress: r.progress }) }];
    });
    try {
      const answer = await this.#ask<{ jobs: { lease: string; status: string }[]; stop: boolean }>("/heartbeat", { jobs });
      for (const { lease, status } of answer.jobs) {
        if (status !== "running") this.#running.get(lease)?.stop.abort(new Error(`the job is ${status}`));
      }
      return answer.stop;
    } catch (error) {
      for (const [lease, log] of taken) this.#running.get(lease)?.lines.unshift(...log);
      throw error;
    }
  }

  async #ask<Answer>(path: string, body?: unknown, signal?: AbortSignal, method = "POST"): Promise<Answer> {
    const limit = AbortSignal.timeout(this.#options.timeout ?? 30_000);
    const stop = new AbortController();
    const forget = [limit, signal].map((s) => listen(s, () => stop.abort(s?.reason)));
    try {
      return await this.#answer<Answer>(path, body, stop.signal, method);
    } finally {
      for (const f of forget) f();
    }
  }

  async #answer<Answer>(path: string, body: unknown, signal: AbortSignal, method: string): Promise<Answer> {
    const headers: Record<string, string> = { Accept: "application/json", Authorization: `Bearer ${this.#options.token ?? ""}` };
    if (body !== undefined) headers["Content-Type"] = "application/json";
    const at = `/api/v1/workers${path === "" && method === "POST" ? "" : this.#session + path}`;
    let response: Response;
    try {
      response = await (this.#options.fetch ?? fetch)(this.#base + at, { method, headers, signal, ...(body !== undefined && { body: JSON.stringify(body) }) });
    } catch (cause) {
      throw new JobsError(`no answer to ${method} ${at}: ${cause instanceof Error ? cause.message : cause}`, 0, undefined, cause);
    }
    if (response.status === 204) return undefined as Answer;
    if (!response.ok) {
      const problem = (await response.json().catch(() => undefined)) as Problem | undefined;
      throw new JobsError(problem?.detail ?? `the server answered ${response.status}`, response.status, problem);
    }
    return (await response.json()) as Answer;
  }
}

/** Says that the same request may succeed a moment later. */
function passing(error: unknown): boolean {
  return error instanceof JobsError && (error.status === 0 || error.status === 429 || error.status >= 500);
}

/** Calls back when the signal is aborted, at once if it is already. What it returns takes the listener off again. */
function listen(signal: AbortSignal | undefined, called: () => void): () => void {
  if (signal?.aborted) called();
  signal?.addEventListener("abort", called, { once: true });
  return () => signal?.removeEventListener("abort", called);
}

/** Resolves after so long, or when the signal is aborted. */
function sleep(milliseconds: number, signal?: AbortSignal): Promise<void> {
  return new Promise((resolve) => {
    const done = () => (clearTimeout(timer), forget(), resolve());
    const timer = setTimeout(() => done(), milliseconds);
    const forget = listen(signal?.aborted ? undefined : signal, () => done());
    if (signal?.aborted) done();
  });
}

/** Resolves when one of them ends, or the signal is aborted. It leaves nothing behind on the signal, which lives long. */
function first(ends: Iterable<Promise<void>>, signal: AbortSignal): Promise<void> {
  return new Promise((resolve) => {
    const forget = listen(signal, resolve);
    void Promise.race(ends).finally(() => (forget(), resolve()));
  });
}
