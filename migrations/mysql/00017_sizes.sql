-- +goose Up
-- How much room folders and tables took, a row a day and part: plots of growth.
CREATE TABLE cmsjobs_sizes (
  day VARCHAR(10) NOT NULL,
  part VARCHAR(32) NOT NULL,
  bytes BIGINT NOT NULL,
  measured_at BIGINT NOT NULL,
  PRIMARY KEY (day, part)
) ENGINE=InnoDB DEFAULT CHARSET=utf8mb4 COLLATE=utf8mb4_unicode_ci;

-- +goose Down
DROP TABLE cmsjobs_sizes;
