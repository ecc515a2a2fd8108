-- +goose Up
-- Names that keep a second job out while the first waits or runs. A row whose
-- job is gone from jobs is void: nothing can stick.
CREATE TABLE cmsjobs_unique (
  name VARCHAR(191) CHARACTER SET utf8mb4 COLLATE utf8mb4_bin NOT NULL PRIMARY KEY,
  job_id BIGINT NOT NULL,
  uuid VARCHAR(191) CHARACTER SET utf8mb4 COLLATE utf8mb4_bin NOT NULL,
  created_at BIGINT NOT NULL
) ENGINE=InnoDB DEFAULT CHARSET=utf8mb4 COLLATE=utf8mb4_unicode_ci;
CREATE INDEX cmsjobs_unique_job ON cmsjobs_unique (job_id);

-- +goose Down
DROP TABLE cmsjobs_unique;
