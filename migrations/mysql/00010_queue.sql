-- +goose Up
-- One row for each run that ended, written in the transaction that ends it.
-- lease names the claim, so that a settlement whose answer was lost is known again.
-- +goose StatementBegin
CREATE TABLE IF NOT EXISTS cmsjobs_runs (
  id BIGINT UNSIGNED NOT NULL AUTO_INCREMENT PRIMARY KEY,
  job_id BIGINT NOT NULL,
  uuid VARCHAR(191) CHARACTER SET utf8mb4 COLLATE utf8mb4_bin NOT NULL,
  type VARCHAR(191) CHARACTER SET utf8mb4 COLLATE utf8mb4_bin NOT NULL,
  queue VARCHAR(191) CHARACTER SET utf8mb4 COLLATE utf8mb4_bin NOT NULL,
  attempt INT NOT NULL,
  outcome VARCHAR(16) CHARACTER SET ascii COLLATE ascii_bin NOT NULL,
  worker VARCHAR(191) NOT NULL,
  lease VARCHAR(32) NOT NULL,
  ended_at BIGINT NOT NULL,
  duration_ms BIGINT NOT NULL,
  wait_ms BIGINT NOT NULL,
  error MEDIUMTEXT NULL,
  result MEDIUMTEXT NULL,
  data MEDIUMTEXT NULL,
  -- created_at is when the job was enqueued (Unix milliseconds), metadata who asked
  -- for it: the job's row is gone by the time somebody wants to know.
  created_at BIGINT NOT NULL DEFAULT 0,
  metadata MEDIUMTEXT NULL,
  INDEX cmsjobs_runs_outcome (outcome, ended_at, id),
  INDEX cmsjobs_runs_type (type, ended_at, id),
  INDEX cmsjobs_runs_queue (queue, ended_at, id),
  INDEX cmsjobs_runs_uuid (uuid)
) ENGINE=InnoDB DEFAULT CHARSET=utf8mb4 COLLATE=utf8mb4_unicode_ci;
-- +goose StatementEnd

-- Workers that live, and what people told all of them.
-- +goose StatementBegin
CREATE TABLE IF NOT EXISTS cmsjobs_workers (
  id VARCHAR(191) CHARACTER SET utf8mb4 COLLATE utf8mb4_bin NOT NULL PRIMARY KEY,
  host VARCHAR(191) NOT NULL,
  pid INT NOT NULL,
  version VARCHAR(191) NOT NULL,
  queues MEDIUMTEXT NOT NULL,
  types MEDIUMTEXT NOT NULL,
  slots INT NOT NULL,
  configured_slots INT NOT NULL DEFAULT 0,
  max_slots INT NOT NULL DEFAULT 0,
  status VARCHAR(16) NOT NULL,
  started_at BIGINT NOT NULL,
  heartbeat_at BIGINT NOT NULL,
  memory_bytes BIGINT NOT NULL,
  done BIGINT NOT NULL,
  failed BIGINT NOT NULL,
  running MEDIUMTEXT NOT NULL,
  php MEDIUMTEXT NOT NULL,
  stop INT NOT NULL DEFAULT 0,
  ordered_slots INT NOT NULL DEFAULT 0
) ENGINE=InnoDB DEFAULT CHARSET=utf8mb4 COLLATE=utf8mb4_unicode_ci;
-- +goose StatementEnd

-- +goose StatementBegin
CREATE TABLE IF NOT EXISTS cmsjobs_control_signals (
  name VARCHAR(191) CHARACTER SET utf8mb4 COLLATE utf8mb4_bin NOT NULL PRIMARY KEY,
  at BIGINT NOT NULL,
  value BIGINT NOT NULL DEFAULT 0
) ENGINE=InnoDB DEFAULT CHARSET=utf8mb4 COLLATE=utf8mb4_unicode_ci;
-- +goose StatementEnd

-- +goose StatementBegin
CREATE TABLE IF NOT EXISTS cmsjobs_cancels (
  uuid VARCHAR(191) CHARACTER SET utf8mb4 COLLATE utf8mb4_bin NOT NULL PRIMARY KEY,
  at BIGINT NOT NULL,
  by_whom VARCHAR(191) NOT NULL
) ENGINE=InnoDB DEFAULT CHARSET=utf8mb4 COLLATE=utf8mb4_unicode_ci;
-- +goose StatementEnd

-- +goose StatementBegin
CREATE TABLE IF NOT EXISTS cmsjobs_paused (
  queue VARCHAR(191) CHARACTER SET utf8mb4 COLLATE utf8mb4_bin NOT NULL PRIMARY KEY,
  at BIGINT NOT NULL,
  by_whom VARCHAR(191) NOT NULL
) ENGINE=InnoDB DEFAULT CHARSET=utf8mb4 COLLATE=utf8mb4_unicode_ci;
-- +goose StatementEnd

-- What handlers wrote for people, line by line.
-- +goose StatementBegin
CREATE TABLE IF NOT EXISTS cmsjobs_job_logs (
  id BIGINT UNSIGNED NOT NULL AUTO_INCREMENT PRIMARY KEY,
  uuid VARCHAR(191) CHARACTER SET utf8mb4 COLLATE utf8mb4_bin NOT NULL,
  attempt INT NOT NULL,
  at BIGINT NOT NULL,
  line MEDIUMTEXT NOT NULL,
  INDEX cmsjobs_job_logs_uuid (uuid, id),
  INDEX cmsjobs_job_logs_at (at)
) ENGINE=InnoDB DEFAULT CHARSET=utf8mb4 COLLATE=utf8mb4_unicode_ci;
-- +goose StatementEnd

-- Names that keep a second job out while the first waits or runs. A row whose
-- job is gone from jobs is void: nothing can stick.
-- +goose StatementBegin
CREATE TABLE IF NOT EXISTS cmsjobs_unique (
  name VARCHAR(191) CHARACTER SET utf8mb4 COLLATE utf8mb4_bin NOT NULL PRIMARY KEY,
  job_id BIGINT NOT NULL,
  uuid VARCHAR(191) CHARACTER SET utf8mb4 COLLATE utf8mb4_bin NOT NULL,
  created_at BIGINT NOT NULL,
  INDEX cmsjobs_unique_job (job_id)
) ENGINE=InnoDB DEFAULT CHARSET=utf8mb4 COLLATE=utf8mb4_unicode_ci;
-- +goose StatementEnd

-- How far the processes have read in one order of one queue: each takes the rows
-- behind it for itself and moves it past them. It may be lost: reading begins again.
-- rescanner looks for rows that appeared before it, until rescan_until (Unix ms).
-- +goose StatementBegin
CREATE TABLE IF NOT EXISTS cmsjobs_cursors (
  name VARCHAR(191) CHARACTER SET utf8mb4 COLLATE utf8mb4_bin NOT NULL PRIMARY KEY,
  at VARCHAR(40) CHARACTER SET ascii COLLATE ascii_bin NOT NULL DEFAULT '',
  id BIGINT NOT NULL DEFAULT 0,
  rescanner VARCHAR(32) CHARACTER SET ascii COLLATE ascii_bin NOT NULL DEFAULT '',
  rescan_until BIGINT NOT NULL DEFAULT 0
) ENGINE=InnoDB DEFAULT CHARSET=utf8mb4 COLLATE=utf8mb4_unicode_ci;
-- +goose StatementEnd

-- How many jobs of a type may run at once in the fleet: one row a permit. A permit
-- is free when expires_at (Unix seconds) has passed.
-- +goose StatementBegin
CREATE TABLE IF NOT EXISTS cmsjobs_permits (
  type VARCHAR(191) CHARACTER SET utf8mb4 COLLATE utf8mb4_bin NOT NULL,
  permit INT NOT NULL,
  job_id BIGINT NOT NULL DEFAULT 0,
  token VARCHAR(32) NOT NULL DEFAULT '',
  expires_at BIGINT NOT NULL DEFAULT 0,
  PRIMARY KEY (type, permit),
  INDEX cmsjobs_permits_job (job_id)
) ENGINE=InnoDB DEFAULT CHARSET=utf8mb4 COLLATE=utf8mb4_unicode_ci;
-- +goose StatementEnd

-- What failed_jobs cannot be asked quickly: the type and the cause of each of
-- its rows. It is an index, made from failed_jobs and corrected by comparing.
-- +goose StatementBegin
CREATE TABLE IF NOT EXISTS cmsjobs_failures (
  failed_id BIGINT NOT NULL PRIMARY KEY,
  cause VARCHAR(32) CHARACTER SET ascii COLLATE ascii_bin NOT NULL,
  type VARCHAR(191) CHARACTER SET utf8mb4 COLLATE utf8mb4_bin NOT NULL,
  failed_at BIGINT NOT NULL,
  message VARCHAR(500) NOT NULL,
  INDEX cmsjobs_failures_cause (cause, failed_at, failed_id),
  INDEX cmsjobs_failures_type (type, failed_id)
) ENGINE=InnoDB DEFAULT CHARSET=utf8mb4 COLLATE=utf8mb4_unicode_ci;
-- +goose StatementEnd

-- The history counted by half hours, so that plots and totals need not read a
-- million runs. at is the half hour's start in Unix milliseconds; a row is
-- written once, when the half hour is over.
-- +goose StatementBegin
CREATE TABLE IF NOT EXISTS cmsjobs_throughput (
  outcome VARCHAR(16) CHARACTER SET ascii COLLATE ascii_bin NOT NULL,
  at BIGINT NOT NULL,
  ended BIGINT NOT NULL,
  duration_ms BIGINT NOT NULL,
  wait_ms BIGINT NOT NULL,
  PRIMARY KEY (outcome, at),
  INDEX cmsjobs_throughput_at (at)
) ENGINE=InnoDB DEFAULT CHARSET=utf8mb4 COLLATE=utf8mb4_unicode_ci;
-- +goose StatementEnd

-- How much space folders and tables took, a row a day and part: charts of usage.
-- +goose StatementBegin
CREATE TABLE IF NOT EXISTS cmsjobs_usage (
  day VARCHAR(10) NOT NULL,
  part VARCHAR(32) NOT NULL,
  bytes BIGINT NOT NULL,
  measured_at BIGINT NOT NULL,
  PRIMARY KEY (day, part)
) ENGINE=InnoDB DEFAULT CHARSET=utf8mb4 COLLATE=utf8mb4_unicode_ci;
-- +goose StatementEnd

-- Jobs that were released because a dependency is unavailable, until it is available again. Times are Unix milliseconds by the database's clock.
-- +goose StatementBegin
CREATE TABLE IF NOT EXISTS cmsjobs_waits (
  job_id     BIGINT NOT NULL PRIMARY KEY,
  queue      VARCHAR(255) NOT NULL,
  dependency VARCHAR(191) CHARACTER SET utf8mb4 COLLATE utf8mb4_bin NOT NULL,
  at         BIGINT NOT NULL,
  INDEX cmsjobs_waits_dependency (dependency, job_id)
) ENGINE=InnoDB DEFAULT CHARSET=utf8mb4 COLLATE=utf8mb4_unicode_ci;
-- +goose StatementEnd

-- What internal jobs are to do. Their rows in the queue name an order's id and
-- nothing else. Times are Unix milliseconds; used_at is 0 until it was done.
-- +goose StatementBegin
CREATE TABLE IF NOT EXISTS cmsjobs_internal_orders (
  id CHAR(32) CHARACTER SET utf8mb4 COLLATE utf8mb4_bin NOT NULL PRIMARY KEY,
  type VARCHAR(191) NOT NULL,
  payload MEDIUMTEXT NOT NULL,
  created_at BIGINT NOT NULL,
  used_at BIGINT NOT NULL,
  INDEX cmsjobs_internal_orders_created (created_at)
) ENGINE=InnoDB DEFAULT CHARSET=utf8mb4 COLLATE=utf8mb4_unicode_ci;
-- +goose StatementEnd

-- +goose Down
DROP TABLE IF EXISTS cmsjobs_internal_orders;
DROP TABLE IF EXISTS cmsjobs_waits;
DROP TABLE IF EXISTS cmsjobs_usage;
DROP TABLE IF EXISTS cmsjobs_throughput;
DROP TABLE IF EXISTS cmsjobs_failures;
DROP TABLE IF EXISTS cmsjobs_cursors;
DROP TABLE IF EXISTS cmsjobs_permits;
DROP TABLE IF EXISTS cmsjobs_unique;
DROP TABLE IF EXISTS cmsjobs_job_logs;
DROP TABLE IF EXISTS cmsjobs_paused;
DROP TABLE IF EXISTS cmsjobs_cancels;
DROP TABLE IF EXISTS cmsjobs_control_signals;
DROP TABLE IF EXISTS cmsjobs_workers;
DROP TABLE IF EXISTS cmsjobs_runs;
