-- +goose Up
-- Types that the workers of other programs run. One that nobody announced for a
-- month is removed. Times are Unix milliseconds.
-- +goose StatementBegin
CREATE TABLE cmsjobs_announced_types (
  type VARCHAR(100) NOT NULL PRIMARY KEY,
  title TEXT NOT NULL,
  queue VARCHAR(191) NOT NULL,
  payload_schema TEXT NOT NULL,
  max_attempts INTEGER NOT NULL,
  timeout_ms INTEGER NOT NULL,
  max_running INTEGER NOT NULL,
  announced_at INTEGER NOT NULL
);
-- +goose StatementEnd

-- +goose Down
DROP TABLE cmsjobs_announced_types;
