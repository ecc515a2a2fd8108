-- +goose Up
-- When administrators were last told of a thing, and how often it happened since. Times are Unix milliseconds.
CREATE TABLE cmsjobs_notifications (
  topic VARCHAR(191) CHARACTER SET utf8mb4 COLLATE utf8mb4_bin NOT NULL PRIMARY KEY,
  told_at BIGINT NOT NULL,
  told_by VARCHAR(191) NOT NULL,
  told_count INT NOT NULL,
  held INT NOT NULL,
  held_title VARCHAR(255) NOT NULL,
  held_message VARCHAR(1000) NOT NULL
) ENGINE=InnoDB DEFAULT CHARSET=utf8mb4 COLLATE=utf8mb4_unicode_ci;

-- +goose Down
DROP TABLE cmsjobs_notifications;
