-- +goose Up
-- What people and instances agreed on for each schedule entry. Times are Unix
-- milliseconds; last_tick is the newest tick that was enqueued or given up.
CREATE TABLE cmsjobs_schedules (
  entry VARCHAR(191) CHARACTER SET utf8mb4 COLLATE utf8mb4_bin NOT NULL PRIMARY KEY,
  since BIGINT NOT NULL,
  last_tick BIGINT NOT NULL,
  paused SMALLINT NOT NULL,
  cron VARCHAR(191) NOT NULL,
  data MEDIUMTEXT NULL
) ENGINE=InnoDB DEFAULT CHARSET=utf8mb4;

-- One row for each tick. Its key, inserted in the transaction that enqueues the
-- job, is what makes a tick one job among any number of instances.
CREATE TABLE cmsjobs_ticks (
  entry VARCHAR(191) CHARACTER SET utf8mb4 COLLATE utf8mb4_bin NOT NULL,
  tick BIGINT NOT NULL,
  noted_at BIGINT NOT NULL,
  uuid VARCHAR(191) CHARACTER SET utf8mb4 COLLATE utf8mb4_bin NOT NULL,
  outcome VARCHAR(16) NOT NULL,
  note VARCHAR(255) NOT NULL,
  duration_ms BIGINT NOT NULL,
  PRIMARY KEY (entry, tick)
) ENGINE=InnoDB DEFAULT CHARSET=utf8mb4;
CREATE INDEX cmsjobs_ticks_outcome ON cmsjobs_ticks (outcome, noted_at);
CREATE INDEX cmsjobs_ticks_noted ON cmsjobs_ticks (noted_at);

-- +goose Down
DROP TABLE cmsjobs_ticks;
DROP TABLE cmsjobs_schedules;
