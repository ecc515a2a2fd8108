-- +goose Up
-- One row for each piece of content whose publication lies ahead, and its
-- pending job. due is Unix milliseconds.
CREATE TABLE cmsjobs_publications (
  model VARCHAR(64) NOT NULL,
  entity VARCHAR(64) NOT NULL,
  due BIGINT NOT NULL,
  uuid VARCHAR(191) NOT NULL,
  PRIMARY KEY (model, entity)
);

-- How far the watcher has read each table of content: a wall-clock time of the
-- CMS and the last row with it. One instance holds the lease and reads.
CREATE TABLE cmsjobs_watch (
  name VARCHAR(64) NOT NULL PRIMARY KEY,
  seen VARCHAR(32) NOT NULL,
  seen_id VARCHAR(64) NOT NULL,
  holder VARCHAR(64) NOT NULL,
  until BIGINT NOT NULL
);

-- +goose Down
DROP TABLE cmsjobs_watch;
DROP TABLE cmsjobs_publications;
