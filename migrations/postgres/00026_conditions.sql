-- +goose Up
-- One row for each condition: whether it holds, since when, and who saw it. A
-- change is a compare-and-set on active, so that one process notifies of it.
-- Times are Unix milliseconds by the database's clock.
-- +goose StatementBegin
CREATE TABLE cmsjobs_conditions (
  name VARCHAR(191) NOT NULL PRIMARY KEY,
  active INT NOT NULL,
  pending_since BIGINT NOT NULL,
  changed_at BIGINT NOT NULL,
  seen_at BIGINT NOT NULL,
  seen_by VARCHAR(191) NOT NULL,
  detail VARCHAR(1000) NOT NULL
);
-- +goose StatementEnd

-- One row for each process of the service and what it does: its heartbeat, and
-- when its scheduler last went through the timetable (0: it has none).
-- +goose StatementBegin
CREATE TABLE cmsjobs_processes (
  id VARCHAR(191) NOT NULL PRIMARY KEY,
  host VARCHAR(191) NOT NULL,
  pid INT NOT NULL,
  version VARCHAR(191) NOT NULL,
  parts VARCHAR(191) NOT NULL,
  started_at BIGINT NOT NULL,
  heartbeat_at BIGINT NOT NULL,
  scheduled_at BIGINT NOT NULL
);
-- +goose StatementEnd

-- When an outside monitor was last called: for the service, or for the success
-- of a schedule entry. at is the compare-and-set by which one process calls.
-- +goose StatementBegin
CREATE TABLE cmsjobs_pings (
  name VARCHAR(191) NOT NULL PRIMARY KEY,
  at BIGINT NOT NULL
);
-- +goose StatementEnd

-- +goose Down
DROP TABLE cmsjobs_pings;
DROP TABLE cmsjobs_processes;
DROP TABLE cmsjobs_conditions;
