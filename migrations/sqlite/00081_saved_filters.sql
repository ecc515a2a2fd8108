-- +goose Up
-- Filters of the lists that people saved, each its owner's own. query is a filter as
-- the page's address writes it; times are Unix milliseconds.
-- +goose StatementBegin
CREATE TABLE cmsjobs_saved_filters (
  owner VARCHAR(191) NOT NULL,
  list VARCHAR(16) NOT NULL,
  name VARCHAR(60) NOT NULL,
  query VARCHAR(1000) NOT NULL,
  created_at BIGINT NOT NULL,
  PRIMARY KEY (owner, list, name)
);
-- +goose StatementEnd

-- +goose Down
DROP TABLE cmsjobs_saved_filters;
