-- +goose Up
-- One row for each condition: whether it holds, since when, and who saw it. A
-- change is a compare-and-set on active, so that one process notifies of it.
-- Times are Unix milliseconds by the database's clock.
CREATE TABLE cmsjobs_conditions (
  name VARCHAR(191) NOT NULL PRIMARY KEY,
  active INT NOT NULL,
  pending_since BIGINT NOT NULL,
  changed_at BIGINT NOT NULL,
  seen_at BIGINT NOT NULL,
  seen_by VARCHAR(191) NOT NULL,
  detail VARCHAR(1000) NOT NULL
);

-- +goose Down
DROP TABLE cmsjobs_conditions;
