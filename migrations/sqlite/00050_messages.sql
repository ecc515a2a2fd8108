-- +goose Up
-- One row for each dependency that ever failed. Times are Unix milliseconds by the database's clock.
-- +goose StatementBegin
CREATE TABLE cmsjobs_breakers (
  dependency VARCHAR(191) NOT NULL PRIMARY KEY,
  state VARCHAR(16) NOT NULL,
  failures INT NOT NULL,
  first_failure_at BIGINT NOT NULL,
  trips INT NOT NULL,
  retry_at BIGINT NOT NULL,
  last_error VARCHAR(500) NOT NULL,
  changed_at BIGINT NOT NULL
);
-- +goose StatementEnd

-- Who wants to hear of what. Times are Unix milliseconds.
-- +goose StatementBegin
CREATE TABLE cmsjobs_webhooks (
  id INTEGER PRIMARY KEY AUTOINCREMENT,
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
);
-- +goose StatementEnd

-- Every attempt to deliver.
-- +goose StatementBegin
CREATE TABLE cmsjobs_webhook_deliveries (
  id INTEGER PRIMARY KEY AUTOINCREMENT,
  message_id VARCHAR(191) NOT NULL,
  subscription_id BIGINT NOT NULL,
  event VARCHAR(191) NOT NULL,
  url VARCHAR(2000) NOT NULL,
  attempt INT NOT NULL,
  status INT NOT NULL,
  error VARCHAR(500) NOT NULL,
  request TEXT NOT NULL,
  answer TEXT NOT NULL,
  duration_ms BIGINT NOT NULL,
  created_at BIGINT NOT NULL
);
-- +goose StatementEnd
CREATE INDEX cmsjobs_webhook_deliveries_message ON cmsjobs_webhook_deliveries (message_id, id);
CREATE INDEX cmsjobs_webhook_deliveries_subscription ON cmsjobs_webhook_deliveries (subscription_id, id);
CREATE INDEX cmsjobs_webhook_deliveries_created ON cmsjobs_webhook_deliveries (created_at);

-- When administrators were last notified of a thing, and how often it happened since. Times are Unix milliseconds.
-- +goose StatementBegin
CREATE TABLE cmsjobs_notifications (
  topic VARCHAR(191) NOT NULL PRIMARY KEY,
  notified_at BIGINT NOT NULL,
  notified_by VARCHAR(191) NOT NULL,
  notified_count INT NOT NULL,
  held INT NOT NULL,
  held_title VARCHAR(255) NOT NULL,
  held_message VARCHAR(1000) NOT NULL
);
-- +goose StatementEnd

-- +goose Down
DROP TABLE cmsjobs_notifications;
DROP TABLE cmsjobs_webhook_deliveries;
DROP TABLE cmsjobs_webhooks;
DROP TABLE cmsjobs_breakers;
