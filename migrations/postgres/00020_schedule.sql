-- +goose Up
-- One row a tick: who inserts it enqueues its job, in the same transaction.
CREATE TABLE cmsjobs_ticks (
  entry   VARCHAR(100) NOT NULL,
  tick    BIGINT NOT NULL, -- Unix milliseconds of the moment that was due
  at      BIGINT NOT NULL, -- when it was enqueued, or found missed
  uuid    VARCHAR(191) NOT NULL,
  outcome VARCHAR(16) NOT NULL, -- enqueued, missed, skipped, manual
  note    VARCHAR(255) NOT NULL,
  PRIMARY KEY (entry, tick)
);
CREATE INDEX cmsjobs_ticks_at ON cmsjobs_ticks (at);

-- What people changed of the timetable.
CREATE TABLE cmsjobs_schedules (
  name       VARCHAR(100) NOT NULL PRIMARY KEY,
  cron       VARCHAR(191) NULL,
  paused     INT NULL,
  data       TEXT NULL,
  changed_at BIGINT NOT NULL
);

-- Since when a schedule entry has its cron expression, and when a scheduler last had it. Times are Unix milliseconds by the database's clock.
CREATE TABLE cmsjobs_schedule_seen (
  entry    VARCHAR(100) NOT NULL,
  cron     VARCHAR(191) NOT NULL,
  first_at BIGINT NOT NULL,
  back_at  BIGINT NOT NULL, -- since when it was seen without a longer silence
  last_at  BIGINT NOT NULL,
  PRIMARY KEY (entry, cron)
);

-- One row for each piece of content whose publication lies ahead, and its
-- pending job. due is Unix milliseconds.
CREATE TABLE cmsjobs_publications (
  model VARCHAR(64) NOT NULL,
  entity VARCHAR(64) NOT NULL,
  due BIGINT NOT NULL,
  uuid VARCHAR(191) NOT NULL,
  PRIMARY KEY (model, entity)
);

-- Which instance watches the content: it holds the lease until then.
CREATE TABLE cmsjobs_watch (
  name VARCHAR(64) NOT NULL PRIMARY KEY,
  holder VARCHAR(64) NOT NULL,
  until BIGINT NOT NULL
);

-- +goose Down
DROP TABLE cmsjobs_watch;
DROP TABLE cmsjobs_publications;
DROP TABLE cmsjobs_schedule_seen;
DROP TABLE cmsjobs_schedules;
DROP TABLE cmsjobs_ticks;
