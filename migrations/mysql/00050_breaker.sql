-- +goose Up
-- One row for each dependency that ever failed. Times are Unix milliseconds by the database's clock.
CREATE TABLE cmsjobs_breakers (
  dependency VARCHAR(191) CHARACTER SET utf8mb4 COLLATE utf8mb4_bin NOT NULL PRIMARY KEY,
  state VARCHAR(16) NOT NULL,
  failures INT NOT NULL,
  first_failure_at BIGINT NOT NULL,
  trips INT NOT NULL,
  retry_at BIGINT NOT NULL,
  last_error VARCHAR(500) NOT NULL,
  changed_at BIGINT NOT NULL
) ENGINE=InnoDB DEFAULT CHARSET=utf8mb4 COLLATE=utf8mb4_unicode_ci;

-- +goose Down
DROP TABLE cmsjobs_breakers;
