-- +goose Up
-- One row for each run that ended, written in the transaction that ends it.
-- lease names the claim, so that a settlement whose answer was lost is known again.
CREATE TABLE cmsjobs_runs (
  id BIGINT UNSIGNED NOT NULL AUTO_INCREMENT PRIMARY KEY,
  job_id BIGINT NOT NULL,
  uuid VARCHAR(191) CHARACTER SET utf8mb4 COLLATE utf8mb4_bin NOT NULL,
  kind VARCHAR(191) NOT NULL,
  queue VARCHAR(191) NOT NULL,
  attempt INT NOT NULL,
  outcome VARCHAR(16) NOT NULL,
  worker VARCHAR(191) NOT NULL,
  lease VARCHAR(32) NOT NULL,
  ended_at BIGINT NOT NULL,
  duration_ms BIGINT NOT NULL,
  wait_ms BIGINT NOT NULL,
  error MEDIUMTEXT NULL,
  result MEDIUMTEXT NULL,
  data MEDIUMTEXT NULL
) ENGINE=InnoDB DEFAULT CHARSET=utf8mb4 COLLATE=utf8mb4_unicode_ci;
CREATE INDEX cmsjobs_runs_outcome ON cmsjobs_runs (outcome, ended_at, id);
CREATE INDEX cmsjobs_runs_kind ON cmsjobs_runs (kind, ended_at, id);
CREATE INDEX cmsjobs_runs_queue ON cmsjobs_runs (queue, ended_at, id);
CREATE INDEX cmsjobs_runs_uuid ON cmsjobs_runs (uuid);

-- +goose Down
DROP TABLE cmsjobs_runs;
