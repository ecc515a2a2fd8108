-- +goose Up
-- One row for each run that ended, written in the transaction that ends it.
-- lease names the claim, so that a settlement whose answer was lost is known again.
-- +goose StatementBegin
CREATE TABLE cmsjobs_runs (
  id BIGSERIAL PRIMARY KEY,
  job_id BIGINT NOT NULL,
  uuid VARCHAR(191) NOT NULL,
  type VARCHAR(191) NOT NULL,
  queue VARCHAR(191) NOT NULL,
  attempt INTEGER NOT NULL,
  outcome VARCHAR(16) NOT NULL,
  worker VARCHAR(191) NOT NULL,
  lease VARCHAR(32) NOT NULL,
  ended_at BIGINT NOT NULL,
  duration_ms BIGINT NOT NULL,
  wait_ms BIGINT NOT NULL,
  error TEXT NULL,
  result TEXT NULL,
  data TEXT NULL,
  -- created_at is when the job was enqueued (Unix milliseconds), metadata who asked
  -- for it: the job's row is gone by the time somebody wants to know.
  created_at BIGINT NOT NULL DEFAULT 0,
  metadata TEXT NULL
);
-- +goose StatementEnd
CREATE INDEX cmsjobs_runs_outcome ON cmsjobs_runs (outcome, ended_at, id);
CREATE INDEX cmsjobs_runs_type ON cmsjobs_runs (type, ended_at, id);
CREATE INDEX cmsjobs_runs_queue ON cmsjobs_runs (queue, ended_at, id);
CREATE INDEX cmsjobs_runs_uuid ON cmsjobs_runs (uuid);

-- Workers that live, and what people told all of them.
-- +goose StatementBegin
CREATE TABLE cmsjobs_workers (
  id VARCHAR(191) NOT NULL PRIMARY KEY,
  host VARCHAR(191) NOT NULL,
  pid INTEGER NOT NULL,
  version VARCHAR(191) NOT NULL,
  queues TEXT NOT NULL,
  types TEXT NOT NULL,
  slots INTEGER NOT NULL,
  configured_slots INTEGER NOT NULL DEFAULT 0,
  max_slots INTEGER NOT NULL DEFAULT 0,
  status VARCHAR(16) NOT NULL,
  started_at BIGINT NOT NULL,
  heartbeat_at BIGINT NOT NULL,
  memory_bytes BIGINT NOT NULL,
  done BIGINT NOT NULL,
  failed BIGINT NOT NULL,
  running TEXT NOT NULL,
  php TEXT NOT NULL,
  stop INTEGER NOT NULL DEFAULT 0,
  ordered_slots INTEGER NOT NULL DEFAULT 0
);
-- +goose StatementEnd

-- +goose StatementBegin
CREATE TABLE cmsjobs_control_signals (
  name VARCHAR(191) NOT NULL PRIMARY KEY,
  at BIGINT NOT NULL,
  value BIGINT NOT NULL DEFAULT 0
);
-- +goose StatementEnd

-- +goose StatementBegin
CREATE TABLE cmsjobs_cancels (
  uuid VARCHAR(191) NOT NULL PRIMARY KEY,
  at BIGINT NOT NULL,
  by_whom VARCHAR(191) NOT NULL
);
-- +goose StatementEnd

-- +goose StatementBegin
CREATE TABLE cmsjobs_paused (
  queue VARCHAR(191) NOT NULL PRIMARY KEY,
  at BIGINT NOT NULL,
  by_whom VARCHAR(191) NOT NULL
);
-- +goose StatementEnd

-- What handlers wrote for people, line by line.
-- +goose StatementBegin
CREATE TABLE cmsjobs_job_logs (
  id BIGSERIAL PRIMARY KEY,
  uuid VARCHAR(191) NOT NULL,
  attempt INTEGER NOT NULL,
  at BIGINT NOT NULL,
  line TEXT NOT NULL
);
-- +goose StatementEnd
CREATE INDEX cmsjobs_job_logs_uuid ON cmsjobs_job_logs (uuid, id);
CREATE INDEX cmsjobs_job_logs_at ON cmsjobs_job_logs (at);

-- Names that keep a second job out while the first waits or runs. A row whose
-- job is gone from jobs is void: nothing can stick.
-- +goose StatementBegin
CREATE TABLE cmsjobs_unique (
  name VARCHAR(191) NOT NULL PRIMARY KEY,
  job_id BIGINT NOT NULL,
  uuid VARCHAR(191) NOT NULL,
  created_at BIGINT NOT NULL
);
-- +goose StatementEnd
CREATE INDEX cmsjobs_unique_job ON cmsjobs_unique (job_id);

-- How far the processes have read in one order of one queue: each takes the rows
-- behind it for itself and moves it past them. It may be lost: reading begins again.
-- rescanner looks for rows that appeared before it, until rescan_until (Unix ms).
-- +goose StatementBegin
CREATE TABLE cmsjobs_cursors (
  name TEXT NOT NULL PRIMARY KEY,
  at TEXT NOT NULL DEFAULT '',
  id BIGINT NOT NULL DEFAULT 0,
  rescanner TEXT NOT NULL DEFAULT '',
  rescan_until BIGINT NOT NULL DEFAULT 0
);
-- +goose StatementEnd

-- How many jobs of a type may run at once in the fleet: one row a permit. A permit
-- is free when expires_at (Unix seconds) has passed.
-- +goose StatementBegin
CREATE TABLE cmsjobs_permits (
  type VARCHAR(191) NOT NULL,
  permit INTEGER NOT NULL,
  job_id BIGINT NOT NULL DEFAULT 0,
  token VARCHAR(32) NOT NULL DEFAULT '',
  expires_at BIGINT NOT NULL DEFAULT 0,
  PRIMARY KEY (type, permit)
);
-- +goose StatementEnd
CREATE INDEX cmsjobs_permits_job ON cmsjobs_permits (job_id);

-- What failed_jobs cannot be asked quickly: the type and the cause of each of
-- its rows. It is an index, made from failed_jobs and corrected by comparing.
-- +goose StatementBegin
CREATE TABLE cmsjobs_failures (
  failed_id BIGINT NOT NULL PRIMARY KEY,
  cause VARCHAR(32) NOT NULL,
  type VARCHAR(191) NOT NULL,
  failed_at BIGINT NOT NULL,
  message VARCHAR(500) NOT NULL
);
-- +goose StatementEnd
CREATE INDEX cmsjobs_failures_cause ON cmsjobs_failures (cause, failed_at, failed_id);
CREATE INDEX cmsjobs_failures_type ON cmsjobs_failures (type, failed_id);

-- The history counted by half hours, so that plots and totals need not read a
-- million runs. at is the half hour's start in Unix milliseconds; a row is
-- written once, when the half hour is over.
-- +goose StatementBegin
CREATE TABLE cmsjobs_throughput (
  outcome VARCHAR(16) NOT NULL,
  at BIGINT NOT NULL,
  ended BIGINT NOT NULL,
  duration_ms BIGINT NOT NULL,
  wait_ms BIGINT NOT NULL,
  PRIMARY KEY (outcome, at)
);
-- +goose StatementEnd
CREATE INDEX cmsjobs_throughput_at ON cmsjobs_throughput (at);

-- How much space folders and tables took, a row a day and part: charts of usage.
-- +goose StatementBegin
CREATE TABLE cmsjobs_usage (
  day VARCHAR(10) NOT NULL,
  part VARCHAR(32) NOT NULL,
  bytes BIGINT NOT NULL,
  measured_at BIGINT NOT NULL,
  PRIMARY KEY (day, part)
);
-- +goose StatementEnd

-- Jobs that were released because a dependency is unavailable, until it is available again. Times are Unix milliseconds by the database's clock.
-- +goose StatementBegin
CREATE TABLE cmsjobs_waits (
  job_id     BIGINT NOT NULL PRIMARY KEY,
  queue      VARCHAR(255) NOT NULL,
  dependency VARCHAR(191) NOT NULL,
  at         BIGINT NOT NULL
);
-- +goose StatementEnd
CREATE INDEX cmsjobs_waits_dependency ON cmsjobs_waits (dependency, job_id);

-- What internal jobs are to do. Their rows in the queue name an order's id and
-- nothing else. Times are Unix milliseconds; used_at is 0 until it was done.
-- +goose StatementBegin
CREATE TABLE cmsjobs_internal_orders (
  id CHAR(32) NOT NULL PRIMARY KEY,
  type VARCHAR(191) NOT NULL,
  payload TEXT NOT NULL,
  created_at BIGINT NOT NULL,
  used_at BIGINT NOT NULL
);
-- +goose StatementEnd
CREATE INDEX cmsjobs_internal_orders_created ON cmsjobs_internal_orders (created_at);

-- +goose Down
DROP TABLE cmsjobs_internal_orders;
DROP TABLE cmsjobs_waits;
DROP TABLE cmsjobs_usage;
DROP TABLE cmsjobs_throughput;
DROP TABLE cmsjobs_failures;
DROP TABLE cmsjobs_cursors;
DROP TABLE cmsjobs_permits;
DROP TABLE cmsjobs_unique;
DROP TABLE cmsjobs_job_logs;
DROP TABLE cmsjobs_paused;
DROP TABLE cmsjobs_cancels;
DROP TABLE cmsjobs_control_signals;
DROP TABLE cmsjobs_workers;
DROP TABLE cmsjobs_runs;
