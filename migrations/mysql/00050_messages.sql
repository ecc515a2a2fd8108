-- +goose Up
-- One row for each dependency that ever failed. Times are Unix milliseconds by the database's clock.
-- +goose StatementBegin
CREATE TABLE IF NOT EXISTS cmsjobs_breakers (
  dependency VARCHAR(191) CHARACTER SET utf8mb4 COLLATE utf8mb4_bin NOT NULL PRIMARY KEY,
  state VARCHAR(16) NOT NULL,
  failures INT NOT NULL,
  first_failure_at BIGINT NOT NULL,
  trips INT NOT NULL,
  retry_at BIGINT NOT NULL,
  last_error VARCHAR(500) NOT NULL,
  changed_at BIGINT NOT NULL
) ENGINE=InnoDB DEFAULT CHARSET=utf8mb4 COLLATE=utf8mb4_unicode_ci;
-- +goose StatementEnd

-- Who wants to hear of what. Times are Unix milliseconds.
-- +goose StatementBegin
CREATE TABLE IF NOT EXISTS cmsjobs_webhooks (
  id BIGINT UNSIGNED NOT NULL AUTO_INCREMENT PRIMARY KEY,
  name VARCHAR(191) NOT NULL,
  url VARCHAR(2000) NOT NULL,
  events VARCHAR(1000) NOT NULL,
  secret VARCHAR(191) NOT NULL,
  old_secret VARCHAR(191) NOT NULL,
  old_secret_until BIGINT NOT NULL,
  status VARCHAR(16) NOT NULL,
  reason VARCHAR(500) NOT NULL,
  created_at BIGINT NOT NULL,
  updated_at BIGINT NOT NULL
) ENGINE=InnoDB DEFAULT CHARSET=utf8mb4 COLLATE=utf8mb4_unicode_ci;
-- +goose StatementEnd

-- Every attempt to deliver.
-- +goose StatementBegin
CREATE TABLE IF NOT EXISTS cmsjobs_webhook_deliveries (
  id BIGINT UNSIGNED NOT NULL AUTO_INCREMENT PRIMARY KEY,
  message_id VARCHAR(191) CHARACTER SET utf8mb4 COLLATE utf8mb4_bin NOT NULL,
  subscription_id BIGINT NOT NULL,
  event VARCHAR(191) NOT NULL,
  url VARCHAR(2000) NOT NULL,
  attempt INT NOT NULL,
  status INT NOT NULL,
  error VARCHAR(500) NOT NULL,
  request MEDIUMTEXT NOT NULL,
  answer MEDIUMTEXT NOT NULL,
  duration_ms BIGINT NOT NULL,
  created_at BIGINT NOT NULL,
  INDEX cmsjobs_webhook_deliveries_message (message_id, id),
  INDEX cmsjobs_webhook_deliveries_subscription (subscription_id, id),
  INDEX cmsjobs_webhook_deliveries_created (created_at)
) ENGINE=InnoDB DEFAULT CHARSET=utf8mb4 COLLATE=utf8mb4_unicode_ci;
-- +goose StatementEnd

-- When administrators were last notified of a thing, and how often it happened since. Times are Unix milliseconds.
-- +goose StatementBegin
CREATE TABLE IF NOT EXISTS cmsjobs_notifications (
  topic VARCHAR(191) CHARACTER SET utf8mb4 COLLATE utf8mb4_bin NOT NULL PRIMARY KEY,
  notified_at BIGINT NOT NULL,
  notified_by VARCHAR(191) NOT NULL,
  notified_count INT NOT NULL,
  held INT NOT NULL,
  held_title VARCHAR(255) NOT NULL,
  held_message VARCHAR(1000) NOT NULL
) ENGINE=InnoDB DEFAULT CHARSET=utf8mb4 COLLATE=utf8mb4_unicode_ci;
-- +goose StatementEnd

-- +goose Down
DROP TABLE IF EXISTS cmsjobs_notifications;
DROP TABLE IF EXISTS cmsjobs_webhook_deliveries;
DROP TABLE IF EXISTS cmsjobs_webhooks;
DROP TABLE IF EXISTS cmsjobs_breakers;
