-- +goose Up
-- Filters of the lists that people saved, each its owner's own. query is a filter as
-- the page's address writes it; times are Unix milliseconds.
-- +goose StatementBegin
CREATE TABLE IF NOT EXISTS cmsjobs_saved_filters (
  owner VARCHAR(191) CHARACTER SET utf8mb4 COLLATE utf8mb4_bin NOT NULL,
  list VARCHAR(16) CHARACTER SET ascii COLLATE ascii_bin NOT NULL,
  name VARCHAR(60) CHARACTER SET utf8mb4 COLLATE utf8mb4_bin NOT NULL,
  query VARCHAR(1000) CHARACTER SET utf8mb4 COLLATE utf8mb4_bin NOT NULL,
  created_at BIGINT NOT NULL,
  PRIMARY KEY (owner, list, name)
) ENGINE=InnoDB DEFAULT CHARSET=utf8mb4 COLLATE=utf8mb4_unicode_ci;
-- +goose StatementEnd

-- +goose Down
DROP TABLE IF EXISTS cmsjobs_saved_filters;
