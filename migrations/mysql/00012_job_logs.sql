-- +goose Up
-- What handlers wrote for people, line by line.
CREATE TABLE cmsjobs_job_logs (
  id BIGINT UNSIGNED NOT NULL AUTO_INCREMENT PRIMARY KEY,
  uuid VARCHAR(191) CHARACTER SET utf8mb4 COLLATE utf8mb4_bin NOT NULL,
  attempt INT NOT NULL,
  at BIGINT NOT NULL,
  line MEDIUMTEXT NOT NULL
) ENGINE=InnoDB DEFAULT CHARSET=utf8mb4 COLLATE=utf8mb4_unicode_ci;
CREATE INDEX cmsjobs_job_logs_uuid ON cmsjobs_job_logs (uuid, id);
CREATE INDEX cmsjobs_job_logs_at ON cmsjobs_job_logs (at);

-- +goose Down
DROP TABLE cmsjobs_job_logs;
