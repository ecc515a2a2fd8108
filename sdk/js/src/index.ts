import type { Payloads } from "./payloads.js";
import type { Enqueued, EnqueueRequest, Job, JobFilter, JobPage, JobStats, Problem } from "./types.js";

export type * from "./types.js";
export type { Payloads } from "./payloads.js";
export { JobsWorker, PermanentError, ReleaseError } from "./worker.js";
export type { Handler, RunningJob, WorkerOptions, WorkerType } from "./worker.js";

/** An error that the server answered, or no answer (status 0). */
export class JobsError extends Error {
  readonly status: number;
  readonly problem: Problem | undefined;

  constructor(message: string, status: number, problem?: Problem, cause?: unknown) {
    super(message, { cause });
    this.name = "JobsError";
    this.status = status;
    this.problem = problem;
  }
}

export interface JobsOptions {
  /** of the server, for example "https://cms.example" */
  baseUrl: string;
  /** sent as a bearer token; without one the browser's session cookie is used */
  token?: string;
  /** of one request in milliseconds; 30 000 if absent */
  timeout?: number;
  /** replaces the global fetch */
  fetch?: typeof fetch;
}

export interface CallOptions {
  signal?: AbortSignal;
  /** makes repeating an enqueue within a day safe: same key and body, same job */
  idempotencyKey?: string;
  /** the caller's span (W3C Trace Context): the job's runs are traced below it */
  traceparent?: string;
}

/** Enqueues, shows, repeats and deletes jobs. */
export class JobsService {
  readonly #base: string;
  readonly #options: JobsOptions;
  #formToken: string | undefined;

  constructor(options: JobsOptions) {
    this.#base = options.baseUrl.replace(/\/+$/, "");
    this.#options = options;
  }

  /** Enqueues a job. The payload of a type that the service has is checked by the compiler as well. */
  enqueue<Type extends keyof Payloads>(request: EnqueueRequest<Payloads[Type]> & { type: Type }, call?: CallOptions): Promise<Enqueued>;
  enqueue<Payload, Type extends string>(request: EnqueueRequest<Payload> & { type: Type extends keyof Payloads ? never : Type }, call?: CallOptions): Promise<Enqueued>;
  enqueue(request: EnqueueRequest<unknown>, call: CallOptions = {}): Promise<Enqueued> {
    return this.#ask("POST", "/api/v1/jobs", request, call);
  }

  get<Payload = Record<string, unknown>>(id: string, call: CallOptions = {}): Promise<Job<Payload>> {
    return this.#ask("GET", `/api/v1/jobs/${encodeURIComponent(id)}`, undefined, call);
  }

  list<Payload = Record<string, unknown>>(filter: JobFilter = {}, call: CallOptions = {}): Promise<JobPage<Payload>> {
    const query = new URLSearchParams();
    for (const [name, value] of Object.entries(filter)) {
      if (value !== undefined) query.set(name, String(value));
    }
    return this.#ask("GET", `/api/v1/jobs?${query}`, undefined, call);
  }

  /** All jobs that match the filter, page by page. */
  async *all<Payload = Record<string, unknown>>(filter: JobFilter = {}, call: CallOptions = {}): AsyncGenerator<Job<Payload>> {
    for (let cursor = filter.cursor; ; ) {
      const page: JobPage<Payload> = await this.list<Payload>(cursor === undefined ? filter : { ...filter, cursor }, call);
      yield* page.items;
      if (page.next === undefined) return;
      cursor = page.next;
    }
  }

  stats(call: CallOptions = {}): Promise<JobStats> {
    return this.#ask("GET", "/api/v1/jobs/stats", undefined, call);
  }

  requeue<Payload = Record<string, unknown>>(id: string, call: CallOptions = {}): Promise<Job<Payload>> {
    return this.#ask("POST", `/api/v1/jobs/${encodeURIComponent(id)}/requeue`, undefined, call);
  }

  /** Deletes a waiting or failed job. */
  async delete(id: string, call: CallOptions = {}): Promise<void> {
    await this.#ask<void>("DELETE", `/api/v1/jobs/${encodeURIComponent(id)}`, undefined, call);
  }

  async #ask<Answer>(method: string, path: string, body: unknown, call: CallOptions): Promise<Answer> {
    const headers: Record<string, string> = { Accept: "application/json" };
    if (body !== undefined) headers["Content-Type"] = "application/json";
    if (call.idempotencyKey !== undefined) headers["Idempotency-Key"] = call.idempotencyKey;
    if (call.traceparent !== undefined) headers["traceparent"] = call.traceparent;
    if (this.#options.token !== undefined) headers["Authorization"] = `Bearer ${this.#options.token}`;
    else if (method !== "GET") headers["X-CSRF-Token"] = await this.#session(call);
    const response = await this.#send(method, path, headers, body, call);
    if (response.status === 204) return undefined as Answer;
    if (!response.ok) throw await refusal(response);
    return (await response.json()) as Answer;
  }

  /** The form token of the browser's session, requested once. */
  async #session(call: CallOptions): Promise<string> {
    if (this.#formToken === undefined) {
      const response = await this.#send("GET", "/api/v1/session", {}, undefined, call);
      if (!response.ok) throw await refusal(response);
      this.#formToken = ((await response.json()) as { csrf_token?: string }).csrf_token ?? "";
    }
    return this.#formToken;
  }

  async #send(method: string, path: string, headers: Record<string, string>, body: unknown, call: CallOptions): Promise<Response> {
    const limit = AbortSignal.timeout(this.#options.timeout ?? 30_000);
    const stop = new AbortController();
    for (const signal of [limit, call.signal]) {
      if (signal?.aborted) stop.abort(signal.reason);
      signal?.addEventListener("abort", () => stop.abort(signal.reason), { once: true });
    }
    const init: RequestInit = { method, headers, signal: stop.signal, credentials: this.#options.token === undefined ? "same-origin" : "omit" };
    if (body !== undefined) init.body = JSON.stringify(body);
    try {
      return await (this.#options.fetch ?? fetch)(this.#base + path, init);
    } catch (cause) {
      throw new JobsError(`no answer to ${method} ${path}: ${cause instanceof Error ? cause.message : cause}`, 0, undefined, cause);
    }
  }
}

async function refusal(response: Response): Promise<JobsError> {
  try {
    const problem = (await response.json()) as Problem;
    return new JobsError(problem.detail ?? problem.title, response.status, problem);
  } catch {
    return new JobsError(`the server answered ${response.status} and no JSON`, response.status);
  }
}
