-- +goose Up
-- goose has made its own table; every area's tables follow in separate files.
-- Its collation is one that every server knows, so that a dump loads anywhere.
ALTER TABLE cmsjobs_migrations DEFAULT CHARACTER SET utf8mb4 COLLATE utf8mb4_unicode_ci;

-- +goose Down
SELECT 1;
