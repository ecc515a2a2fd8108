-- +goose Up
-- What internal jobs are to do. Their rows in the queue name an order's id and
-- nothing else. Times are Unix milliseconds; used_at is 0 until it was done.
CREATE TABLE cmsjobs_internal_orders (
  id CHAR(32) CHARACTER SET utf8mb4 COLLATE utf8mb4_bin NOT NULL PRIMARY KEY,
  kind VARCHAR(191) NOT NULL,
  payload MEDIUMTEXT NOT NULL,
  created_at BIGINT NOT NULL,
  used_at BIGINT NOT NULL
) ENGINE=InnoDB DEFAULT CHARSET=utf8mb4 COLLATE=utf8mb4_unicode_ci;
CREATE INDEX cmsjobs_internal_orders_created ON cmsjobs_internal_orders (created_at);

-- +goose Down
DROP TABLE cmsjobs_internal_orders;
