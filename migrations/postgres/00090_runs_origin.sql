-- +goose Up
-- created_at is when the job was enqueued (Unix milliseconds), metadata who asked
-- for it: the job's row is gone by the time somebody wants to know.
ALTER TABLE cmsjobs_runs ADD COLUMN created_at BIGINT NOT NULL DEFAULT 0, ADD COLUMN metadata TEXT NULL;

-- +goose Down
ALTER TABLE cmsjobs_runs DROP COLUMN created_at;
ALTER TABLE cmsjobs_runs DROP COLUMN metadata;
