-- +goose Up
-- How many jobs of a kind may run at once in the fleet: one row a place. A place
-- is free when expires_at (Unix seconds) has passed.
CREATE TABLE cmsjobs_permits (
  kind VARCHAR(191) CHARACTER SET utf8mb4 COLLATE utf8mb4_bin NOT NULL,
  place INT NOT NULL,
  job_id BIGINT NOT NULL DEFAULT 0,
  token VARCHAR(32) NOT NULL DEFAULT '',
  expires_at BIGINT NOT NULL DEFAULT 0,
  PRIMARY KEY (kind, place)
) ENGINE=InnoDB DEFAULT CHARSET=utf8mb4 COLLATE=utf8mb4_unicode_ci;
CREATE INDEX cmsjobs_permits_job ON cmsjobs_permits (job_id);

-- +goose Down
DROP TABLE cmsjobs_permits;
