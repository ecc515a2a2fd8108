-- +goose Up
-- Names that keep a second job out while the first waits or runs. A row whose
-- job is gone from jobs is void: nothing can stick.
CREATE TABLE cmsjobs_unique (
  name VARCHAR(191) NOT NULL PRIMARY KEY,
  job_id BIGINT NOT NULL,
  uuid VARCHAR(191) NOT NULL,
  created_at BIGINT NOT NULL
);
CREATE INDEX cmsjobs_unique_job ON cmsjobs_unique (job_id);

-- +goose Down
DROP TABLE cmsjobs_unique;
