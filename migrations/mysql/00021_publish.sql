-- +goose Up
-- One row for each piece of content whose publication lies ahead, and its
-- pending job. due is Unix milliseconds.
CREATE TABLE cmsjobs_publications (
  model VARCHAR(64) CHARACTER SET utf8mb4 COLLATE utf8mb4_bin NOT NULL,
  entity VARCHAR(64) CHARACTER SET utf8mb4 COLLATE utf8mb4_bin NOT NULL,
  due BIGINT NOT NULL,
  uuid VARCHAR(191) CHARACTER SET utf8mb4 COLLATE utf8mb4_bin NOT NULL,
  PRIMARY KEY (model, entity)
) ENGINE=InnoDB DEFAULT CHARSET=utf8mb4 COLLATE=utf8mb4_unicode_ci;

-- How far the watcher has read each table of content: a wall-clock time of the
-- CMS and the last row with it. One instance holds the lease and reads.
CREATE TABLE cmsjobs_watch (
  name VARCHAR(64) CHARACTER SET utf8mb4 COLLATE utf8mb4_bin NOT NULL PRIMARY KEY,
  seen VARCHAR(32) NOT NULL,
  seen_id VARCHAR(64) CHARACTER SET utf8mb4 COLLATE utf8mb4_bin NOT NULL,
  holder VARCHAR(64) NOT NULL,
  `until` BIGINT NOT NULL
) ENGINE=InnoDB DEFAULT CHARSET=utf8mb4 COLLATE=utf8mb4_unicode_ci;

-- +goose Down
DROP TABLE cmsjobs_watch;
DROP TABLE cmsjobs_publications;
