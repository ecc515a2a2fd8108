-- +goose Up
-- What failed_jobs cannot be asked quickly: the kind and the cause of each of
-- its rows. It is an index, made from failed_jobs and mended by comparing.
CREATE TABLE cmsjobs_failures (
  failed_id BIGINT NOT NULL PRIMARY KEY,
  cause VARCHAR(32) CHARACTER SET ascii COLLATE ascii_bin NOT NULL,
  kind VARCHAR(191) CHARACTER SET utf8mb4 COLLATE utf8mb4_bin NOT NULL,
  failed_at BIGINT NOT NULL,
  message VARCHAR(500) NOT NULL
) ENGINE=InnoDB DEFAULT CHARSET=utf8mb4 COLLATE=utf8mb4_unicode_ci;
CREATE INDEX cmsjobs_failures_cause ON cmsjobs_failures (cause, failed_at, failed_id);
CREATE INDEX cmsjobs_failures_kind ON cmsjobs_failures (kind, failed_id);

-- +goose Down
DROP TABLE cmsjobs_failures;
