-- +goose Up
-- One row a tick: who inserts it enqueues its job, in the same transaction.
CREATE TABLE cmsjobs_ticks (
  entry   VARCHAR(100) CHARACTER SET utf8mb4 COLLATE utf8mb4_bin NOT NULL,
  tick    BIGINT NOT NULL, -- Unix milliseconds of the moment that was due
  at      BIGINT NOT NULL, -- when it was enqueued, or found missed
  uuid    VARCHAR(191) NOT NULL,
  outcome VARCHAR(16) NOT NULL, -- enqueued, missed, skipped, manual
  note    VARCHAR(255) NOT NULL,
  PRIMARY KEY (entry, tick)
) ENGINE=InnoDB DEFAULT CHARSET=utf8mb4 COLLATE=utf8mb4_unicode_ci;
CREATE INDEX cmsjobs_ticks_at ON cmsjobs_ticks (at);

-- What people changed of the timetable.
CREATE TABLE cmsjobs_schedules (
  name       VARCHAR(100) CHARACTER SET utf8mb4 COLLATE utf8mb4_bin NOT NULL PRIMARY KEY,
  cron       VARCHAR(191) NULL,
  paused     INT NULL,
  data       MEDIUMTEXT NULL,
  changed_at BIGINT NOT NULL
) ENGINE=InnoDB DEFAULT CHARSET=utf8mb4 COLLATE=utf8mb4_unicode_ci;

-- +goose Down
DROP TABLE cmsjobs_schedules;
DROP TABLE cmsjobs_ticks;
