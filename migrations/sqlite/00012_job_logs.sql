-- +goose Up
-- What handlers wrote for people, line by line.
CREATE TABLE cmsjobs_job_logs (
  id INTEGER PRIMARY KEY AUTOINCREMENT,
  uuid VARCHAR(191) NOT NULL,
  attempt INTEGER NOT NULL,
  at BIGINT NOT NULL,
  line TEXT NOT NULL
);
CREATE INDEX cmsjobs_job_logs_uuid ON cmsjobs_job_logs (uuid, id);
CREATE INDEX cmsjobs_job_logs_at ON cmsjobs_job_logs (at);

-- +goose Down
DROP TABLE cmsjobs_job_logs;
