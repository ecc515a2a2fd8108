/** Where a job stands. */
export type JobStatus = "queued" | "processing" | "completed" | "failed" | "cancelled";

/** A job, as GET /api/v1/jobs/:id shows it. Times are RFC 3339 in UTC. */
export interface Job<Payload = Record<string, unknown>> {
  /** the UUID, or the number of a row without one */
  id: string;
  /** of the row, in the table that holds it */
  number: number;
  type: string;
  queue: string;
  payload: Payload;
  /** an ended job's payload was confidential or too large to be kept */
  payload_omitted?: boolean;
  metadata: Record<string, unknown>;
  status: JobStatus;
  /** delayed, retrying, stalled or paused */
  detail?: string;
  /** belongs to PHP or another program */
  foreign: boolean;
  priority: number;
  /** starts so far, and starts allowed */
  attempts: number;
  max_attempts: number;
  error?: string;
  worker?: string;
  /** the number of the PHP process that runs it, and its time-out there */
  process?: number;
  deadline?: string;
  result?: unknown;
  progress?: { done: number; total?: number; note?: string };
  enqueued_at?: string;
  run_at?: string;
  started_at?: string;
  ended_at?: string;
  duration_ms: number;
}

/** A job to enqueue. */
export interface EnqueueRequest<Payload = Record<string, unknown>> {
  type: string;
  payload?: Payload;
  metadata?: Record<string, unknown>;
  queue?: string;
  /** higher first; refused (422) on Laravel's own jobs table, which has no column for it */
  priority?: number;
  /** when it is due; now if absent */
  run_at?: Date | string;
  /** seconds from now, instead of run_at */
  delay?: number;
  /** starts allowed, 1 to 255; the limit of the type if absent or higher */
  max_attempts?: number;
  /** refuses a second job while one with this key waits or runs */
  unique_key?: string;
}

/** The answer to an enqueue. */
export interface Enqueued {
  id: string;
  type: string;
  status: JobStatus;
  run_at?: string;
  enqueued_at?: string;
  /** a job with this key existed already */
  existing?: boolean;
  /** only if the queue is disabled and the job ran at once */
  result?: unknown;
  error?: string;
}

export interface JobFilter {
  type?: string;
  status?: JobStatus | string;
  queue?: string;
  /** text in payload or error */
  text?: string;
  limit?: number;
  offset?: number;
  cursor?: string;
}

export interface JobPage<Payload = Record<string, unknown>> {
  items: Job<Payload>[];
  /** -1 if counting would be expensive */
  total: number;
  limit: number;
  offset: number;
  next?: string;
}

/** Figures of the queue. Times are in milliseconds. */
export interface JobStats {
  /** queued, delayed and foreign */
  waiting: number;
  /** due */
  queued: number;
  delayed: number;
  foreign: number;
  processing: number;
  completed: number;
  failed: number;
  cancelled: number;
  success_rate: number;
  avg_duration_ms: number;
  oldest_ms: number;
}

/** An error (RFC 9457). */
export interface Problem {
  type: string;
  title: string;
  status: number;
  detail?: string;
  instance?: string;
  errors?: { field: string; detail: string }[];
}
