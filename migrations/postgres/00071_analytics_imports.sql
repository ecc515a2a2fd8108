-- +goose Up
-- How far a log was read, by a digest of its beginning (64 KiB), and a digest of
-- the 64 KiB that follow the position. A log that is imported again is read from there.
CREATE TABLE cmsjobs_analytics_imports (
  id       CHAR(64) NOT NULL PRIMARY KEY,
  read_to  BIGINT   NOT NULL,
  digest   CHAR(64) NOT NULL,
  oldest   BIGINT   NOT NULL,
  read_at  BIGINT   NOT NULL
);

-- +goose Down
DROP TABLE cmsjobs_analytics_imports;
