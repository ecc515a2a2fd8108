-- +goose Up
-- Since when a schedule entry has its cron expression, and when a scheduler last had it. Times are Unix milliseconds by the database's clock.
CREATE TABLE cmsjobs_schedule_seen (
  entry    VARCHAR(100) NOT NULL,
  cron     VARCHAR(191) NOT NULL,
  first_at BIGINT NOT NULL,
  back_at  BIGINT NOT NULL, -- since when it was seen without a longer silence
  last_at  BIGINT NOT NULL,
  PRIMARY KEY (entry, cron)
);

-- +goose Down
DROP TABLE cmsjobs_schedule_seen;
