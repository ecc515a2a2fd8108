-- +goose Up
-- Makes goose's own table; every area's tables follow in files of their own.
SELECT 1;

-- +goose Down
SELECT 1;
