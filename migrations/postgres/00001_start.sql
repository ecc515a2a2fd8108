-- +goose Up
-- Makes goose's own table; every area's tables follow in separate files.
SELECT 1;

-- +goose Down
SELECT 1;
