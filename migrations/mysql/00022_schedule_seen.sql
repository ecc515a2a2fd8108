-- +goose Up
-- Since when a schedule entry has its cron expression, and when a scheduler last had it. Times are Unix milliseconds by the database's clock.
CREATE TABLE cmsjobs_schedule_seen (
  entry    VARCHAR(100) CHARACTER SET utf8mb4 COLLATE utf8mb4_bin NOT NULL,
  cron     VARCHAR(191) CHARACTER SET utf8mb4 COLLATE utf8mb4_bin NOT NULL,
  first_at BIGINT NOT NULL,
  back_at  BIGINT NOT NULL, -- since when it was seen without a longer silence
  last_at  BIGINT NOT NULL,
  PRIMARY KEY (entry, cron)
) ENGINE=InnoDB DEFAULT CHARSET=utf8mb4 COLLATE=utf8mb4_unicode_ci;

-- +goose Down
DROP TABLE cmsjobs_schedule_seen;
