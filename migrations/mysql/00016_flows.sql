-- +goose Up
-- The history counted by half hours, so that plots and totals need not read a
-- million runs. at is the half hour's start in Unix milliseconds; a row is
-- written once, when the half hour is over.
CREATE TABLE cmsjobs_flows (
  outcome VARCHAR(16) CHARACTER SET ascii COLLATE ascii_bin NOT NULL,
  at BIGINT NOT NULL,
  ended BIGINT NOT NULL,
  duration_ms BIGINT NOT NULL,
  wait_ms BIGINT NOT NULL,
  PRIMARY KEY (outcome, at)
) ENGINE=InnoDB DEFAULT CHARSET=utf8mb4 COLLATE=utf8mb4_unicode_ci;
CREATE INDEX cmsjobs_flows_at ON cmsjobs_flows (at);

-- +goose Down
DROP TABLE cmsjobs_flows;
