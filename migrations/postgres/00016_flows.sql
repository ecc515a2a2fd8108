-- +goose Up
-- The history counted by half hours, so that plots and totals need not read a
-- million runs. at is the half hour's start in Unix milliseconds; a row is
-- written once, when the half hour is over.
CREATE TABLE cmsjobs_flows (
  outcome VARCHAR(16) NOT NULL,
  at BIGINT NOT NULL,
  ended BIGINT NOT NULL,
  duration_ms BIGINT NOT NULL,
  wait_ms BIGINT NOT NULL,
  PRIMARY KEY (outcome, at)
);
CREATE INDEX cmsjobs_flows_at ON cmsjobs_flows (at);

-- +goose Down
DROP TABLE cmsjobs_flows;
