-- +goose Up
-- bounces are visits of one view. time_ms is how long visits lasted, from their
-- first view to the last; of a page, how long it was until the next view, in
-- those views (timed) that had one.
ALTER TABLE cmsjobs_analytics_daily ADD COLUMN bounces BIGINT NOT NULL DEFAULT 0;
ALTER TABLE cmsjobs_analytics_daily ADD COLUMN time_ms BIGINT NOT NULL DEFAULT 0;
ALTER TABLE cmsjobs_analytics_daily ADD COLUMN timed BIGINT NOT NULL DEFAULT 0;

-- +goose Down
ALTER TABLE cmsjobs_analytics_daily DROP COLUMN timed;
ALTER TABLE cmsjobs_analytics_daily DROP COLUMN time_ms;
ALTER TABLE cmsjobs_analytics_daily DROP COLUMN bounces;
