-- +goose Up
-- The history counted by half hours for charts: how many of the half hour's runs
-- had an outcome, a type, a queue, a wait or a duration. name of the latter two is
-- a range of milliseconds. at is the half hour's start in Unix milliseconds; a row
-- is written once, when the half hour is over.
-- +goose StatementBegin
CREATE TABLE IF NOT EXISTS cmsjobs_run_figures (
  figure VARCHAR(16) CHARACTER SET ascii COLLATE ascii_bin NOT NULL,
  at BIGINT NOT NULL,
  name VARCHAR(191) CHARACTER SET utf8mb4 COLLATE utf8mb4_bin NOT NULL,
  runs BIGINT NOT NULL,
  PRIMARY KEY (figure, at, name),
  INDEX cmsjobs_run_figures_at (at)
) ENGINE=InnoDB DEFAULT CHARSET=utf8mb4 COLLATE=utf8mb4_unicode_ci;
-- +goose StatementEnd

-- +goose Down
DROP TABLE IF EXISTS cmsjobs_run_figures;
