-- +goose Up
-- Workers that live, and what people told all of them.
CREATE TABLE cmsjobs_workers (
  id VARCHAR(191) NOT NULL PRIMARY KEY,
  host VARCHAR(191) NOT NULL,
  pid INTEGER NOT NULL,
  version VARCHAR(191) NOT NULL,
  queues TEXT NOT NULL,
  kinds TEXT NOT NULL,
  slots INTEGER NOT NULL,
  state VARCHAR(16) NOT NULL,
  started_at BIGINT NOT NULL,
  beat_at BIGINT NOT NULL,
  memory_bytes BIGINT NOT NULL,
  done BIGINT NOT NULL,
  failed BIGINT NOT NULL,
  running TEXT NOT NULL,
  stop INTEGER NOT NULL DEFAULT 0
);
CREATE TABLE cmsjobs_orders (
  name VARCHAR(191) NOT NULL PRIMARY KEY,
  at BIGINT NOT NULL
);
CREATE TABLE cmsjobs_cancels (
  uuid VARCHAR(191) NOT NULL PRIMARY KEY,
  at BIGINT NOT NULL,
  by_whom VARCHAR(191) NOT NULL
);
CREATE TABLE cmsjobs_paused (
  queue VARCHAR(191) NOT NULL PRIMARY KEY,
  at BIGINT NOT NULL,
  by_whom VARCHAR(191) NOT NULL
);

-- +goose Down
DROP TABLE cmsjobs_paused;
DROP TABLE cmsjobs_cancels;
DROP TABLE cmsjobs_orders;
DROP TABLE cmsjobs_workers;
