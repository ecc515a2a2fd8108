-- +goose Up
-- Workers that live, and what people told all of them.
CREATE TABLE cmsjobs_workers (
  id VARCHAR(191) CHARACTER SET utf8mb4 COLLATE utf8mb4_bin NOT NULL PRIMARY KEY,
  host VARCHAR(191) NOT NULL,
  pid INT NOT NULL,
  version VARCHAR(191) NOT NULL,
  queues MEDIUMTEXT NOT NULL,
  kinds MEDIUMTEXT NOT NULL,
  slots INT NOT NULL,
  state VARCHAR(16) NOT NULL,
  started_at BIGINT NOT NULL,
  beat_at BIGINT NOT NULL,
  memory_bytes BIGINT NOT NULL,
  done BIGINT NOT NULL,
  failed BIGINT NOT NULL,
  running MEDIUMTEXT NOT NULL,
  stop INT NOT NULL DEFAULT 0
) ENGINE=InnoDB DEFAULT CHARSET=utf8mb4 COLLATE=utf8mb4_unicode_ci;
CREATE TABLE cmsjobs_orders (
  name VARCHAR(191) CHARACTER SET utf8mb4 COLLATE utf8mb4_bin NOT NULL PRIMARY KEY,
  at BIGINT NOT NULL
) ENGINE=InnoDB DEFAULT CHARSET=utf8mb4 COLLATE=utf8mb4_unicode_ci;
CREATE TABLE cmsjobs_cancels (
  uuid VARCHAR(191) CHARACTER SET utf8mb4 COLLATE utf8mb4_bin NOT NULL PRIMARY KEY,
  at BIGINT NOT NULL,
  by_whom VARCHAR(191) NOT NULL
) ENGINE=InnoDB DEFAULT CHARSET=utf8mb4 COLLATE=utf8mb4_unicode_ci;
CREATE TABLE cmsjobs_paused (
  queue VARCHAR(191) CHARACTER SET utf8mb4 COLLATE utf8mb4_bin NOT NULL PRIMARY KEY,
  at BIGINT NOT NULL,
  by_whom VARCHAR(191) NOT NULL
) ENGINE=InnoDB DEFAULT CHARSET=utf8mb4 COLLATE=utf8mb4_unicode_ci;

-- +goose Down
DROP TABLE cmsjobs_paused;
DROP TABLE cmsjobs_cancels;
DROP TABLE cmsjobs_orders;
DROP TABLE cmsjobs_workers;
