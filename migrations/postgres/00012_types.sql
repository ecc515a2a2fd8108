-- +goose Up
-- Types that the workers of other programs run. One that nobody announced for a
-- month is removed. Times are Unix milliseconds.
-- +goose StatementBegin
CREATE TABLE cmsjobs_announced_types (
  type VARCHAR(100) NOT NULL PRIMARY KEY,
  title TEXT NOT NULL,
  queue VARCHAR(191) NOT NULL,
  payload_schema TEXT NOT NULL,
  max_attempts INT NOT NULL,
  timeout_ms BIGINT NOT NULL,
  max_running INT NOT NULL,
  announced_at BIGINT NOT NULL
);
-- +goose StatementEnd

-- +goose Down
DROP TABLE cmsjobs_announced_types;
