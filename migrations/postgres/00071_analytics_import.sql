-- +goose Up
-- An import finds the views that are stored by day and nonce, which is a digest
-- of their content: how far a log was read needs no table.
CREATE INDEX cmsjobs_page_views_nonce ON cmsjobs_page_views (day, nonce);
DROP TABLE cmsjobs_analytics_imports;

-- +goose Down
DROP INDEX cmsjobs_page_views_nonce;
CREATE TABLE cmsjobs_analytics_imports (
  source  VARCHAR(64) NOT NULL PRIMARY KEY, -- hash of the log's beginning
  name    VARCHAR(500) NOT NULL,
  lines_read BIGINT   NOT NULL,
  updated BIGINT      NOT NULL
);
