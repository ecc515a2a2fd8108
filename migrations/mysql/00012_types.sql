-- +goose Up
-- Types that the workers of other programs run. One that nobody announced for a
-- month is removed. Times are Unix milliseconds.
-- +goose StatementBegin
CREATE TABLE IF NOT EXISTS cmsjobs_announced_types (
  type VARCHAR(100) CHARACTER SET utf8mb4 COLLATE utf8mb4_bin NOT NULL PRIMARY KEY,
  title TEXT NOT NULL,
  queue VARCHAR(191) CHARACTER SET utf8mb4 COLLATE utf8mb4_bin NOT NULL,
  payload_schema MEDIUMTEXT NOT NULL,
  max_attempts INT NOT NULL,
  timeout_ms BIGINT NOT NULL,
  max_running INT NOT NULL,
  announced_at BIGINT NOT NULL
) ENGINE=InnoDB DEFAULT CHARSET=utf8mb4 COLLATE=utf8mb4_unicode_ci;
-- +goose StatementEnd

-- +goose Down
DROP TABLE IF EXISTS cmsjobs_announced_types;
