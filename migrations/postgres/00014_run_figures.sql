-- +goose Up
-- The history counted by half hours for charts: how many of the half hour's runs
-- had an outcome, a type, a queue, a wait or a duration. name of the latter two is
-- a range of milliseconds. at is the half hour's start in Unix milliseconds; a row
-- is written once, when the half hour is over.
-- +goose StatementBegin
CREATE TABLE cmsjobs_run_figures (
  figure VARCHAR(16) NOT NULL,
  at BIGINT NOT NULL,
  name VARCHAR(191) NOT NULL,
  runs BIGINT NOT NULL,
  PRIMARY KEY (figure, at, name)
);
-- +goose StatementEnd
CREATE INDEX cmsjobs_run_figures_at ON cmsjobs_run_figures (at);

-- +goose Down
DROP TABLE cmsjobs_run_figures;
