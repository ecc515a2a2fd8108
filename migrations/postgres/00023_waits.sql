-- +goose Up
-- Jobs that were given back because a dependency is out, until it is back. Times are Unix milliseconds by the database's clock.
CREATE TABLE cmsjobs_waits (
  job_id     BIGINT NOT NULL PRIMARY KEY,
  queue      VARCHAR(255) NOT NULL,
  dependency VARCHAR(191) NOT NULL,
  at         BIGINT NOT NULL
);
CREATE INDEX cmsjobs_waits_dependency ON cmsjobs_waits (dependency, job_id);

-- +goose Down
DROP TABLE cmsjobs_waits;
