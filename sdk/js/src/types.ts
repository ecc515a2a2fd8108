/** Where a job stands, in the words of /api/jobs. */
export type JobStatus = "pending" | "processing" | "completed" | "failed" | "cancelled";

/** A job, as GET /api/jobs/:id shows it. Times are RFC 3339 in UTC. */
export interface Job<Payload = Record<string, unknown>> {
  id: string;
  number: number;
  topic: string;
  queue: string;
  payload: Payload;
  metadata: Record<string, unknown>;
  status: JobStatus;
  /** delayed, retrying, stalled or paused */
  detail?: string;
  priority: number;
  run_at?: string;
  /** starts that failed so far, and how many may */
  retries: number;
  max_retries: number;
  attempts: number;
  max_attempts: number;
  last_error?: string;
  worker?: string;
  result?: unknown;
  progress?: { done: number; total?: number; note?: string };
  created?: string;
  updated?: string;
  started_at?: string;
  ended_at?: string;
  duration_ms: number;
}

/** What is needed for a job. */
export interface EnqueueRequest<Payload = Record<string, unknown>> {
  topic: string;
  payload?: Payload;
  metadata?: Record<string, unknown>;
  queue?: string;
  priority?: number;
  /** when it falls due; now where it is absent */
  runAt?: Date | string;
  /** 0 to 254; the kind's own where it is absent */
  maxRetries?: number;
  /** keeps a second job out while one with this key waits or runs */
  uniqueKey?: string;
}

/** What became of it. */
export interface Enqueued {
  id: string;
  topic: string;
  status: JobStatus;
  run_at?: string;
  created?: string;
  /** a job with this key was there already */
  existing?: boolean;
  /** only where jobs are disabled and ran at once */
  result?: unknown;
  last_error?: string;
}

export interface JobFilter {
  topic?: string;
  status?: JobStatus | string;
  queue?: string;
  /** text in payload or error */
  q?: string;
  limit?: number;
  offset?: number;
  cursor?: string;
}

export interface JobPage<Payload = Record<string, unknown>> {
  items: Job<Payload>[];
  /** -1 where counting would be dear */
  total: number;
  limit: number;
  offset: number;
  next?: string;
}

/** Figures of the queue. Times are in milliseconds. */
export interface JobStats {
  pending: number;
  delayed: number;
  processing: number;
  completed: number;
  failed: number;
  cancelled: number;
  success_rate: number;
  avg_execution_time: number;
  oldest_ms: number;
}

/** A refusal (RFC 9457). */
export interface Problem {
  type: string;
  title: string;
  status: number;
  detail?: string;
  instance?: string;
  errors?: { field: string; detail: string }[];
}
