-- +goose Up
-- What people and instances agreed on for each schedule entry. Times are Unix
-- milliseconds; last_tick is the newest tick that was enqueued or given up.
CREATE TABLE cmsjobs_schedules (
  entry VARCHAR(191) NOT NULL PRIMARY KEY,
  since BIGINT NOT NULL,
  last_tick BIGINT NOT NULL,
  paused SMALLINT NOT NULL,
  cron VARCHAR(191) NOT NULL,
  data TEXT NULL
);

-- One row for each tick. Its key, inserted in the transaction that enqueues the
-- job, is what makes a tick one job among any number of instances.
CREATE TABLE cmsjobs_ticks (
  entry VARCHAR(191) NOT NULL,
  tick BIGINT NOT NULL,
  noted_at BIGINT NOT NULL,
  uuid VARCHAR(191) NOT NULL,
  outcome VARCHAR(16) NOT NULL,
  note VARCHAR(255) NOT NULL,
  duration_ms BIGINT NOT NULL,
  PRIMARY KEY (entry, tick)
);
CREATE INDEX cmsjobs_ticks_outcome ON cmsjobs_ticks (outcome, noted_at);
CREATE INDEX cmsjobs_ticks_noted ON cmsjobs_ticks (noted_at);

-- +goose Down
DROP TABLE cmsjobs_ticks;
DROP TABLE cmsjobs_schedules;
