-- +goose Up
-- The ledger: one row for each recipient of each job. Times are Unix milliseconds.
-- +goose StatementBegin
CREATE TABLE IF NOT EXISTS cmsjobs_mail (
  id BIGINT UNSIGNED NOT NULL AUTO_INCREMENT PRIMARY KEY,
  job_uuid VARCHAR(191) CHARACTER SET utf8mb4 COLLATE utf8mb4_bin NOT NULL,
  recipient VARCHAR(254) CHARACTER SET utf8mb4 COLLATE utf8mb4_bin NOT NULL,
  status VARCHAR(16) NOT NULL,
  token VARCHAR(32) NOT NULL,
  attempt INT NOT NULL,
  message_id VARCHAR(255) NOT NULL,
  sender VARCHAR(254) NOT NULL,
  subject VARCHAR(255) NOT NULL,
  template VARCHAR(191) NOT NULL,
  driver VARCHAR(16) NOT NULL,
  host VARCHAR(255) NOT NULL,
  code INT NOT NULL,
  answer VARCHAR(500) NOT NULL,
  created_at BIGINT NOT NULL,
  updated_at BIGINT NOT NULL,
  UNIQUE INDEX cmsjobs_mail_once (job_uuid, recipient),
  INDEX cmsjobs_mail_status (status, id),
  INDEX cmsjobs_mail_recipient (recipient, id),
  INDEX cmsjobs_mail_created (created_at),
  INDEX cmsjobs_mail_message (message_id)
) ENGINE=InnoDB DEFAULT CHARSET=utf8mb4 COLLATE=utf8mb4_unicode_ci;
-- +goose StatementEnd

-- Every attempt, one row a recipient.
-- +goose StatementBegin
CREATE TABLE IF NOT EXISTS cmsjobs_mail_attempts (
  id BIGINT UNSIGNED NOT NULL AUTO_INCREMENT PRIMARY KEY,
  job_uuid VARCHAR(191) CHARACTER SET utf8mb4 COLLATE utf8mb4_bin NOT NULL,
  recipient VARCHAR(254) CHARACTER SET utf8mb4 COLLATE utf8mb4_bin NOT NULL,
  attempt INT NOT NULL,
  status VARCHAR(16) NOT NULL,
  driver VARCHAR(16) NOT NULL,
  host VARCHAR(255) NOT NULL,
  code INT NOT NULL,
  answer VARCHAR(500) NOT NULL,
  duration_ms BIGINT NOT NULL,
  created_at BIGINT NOT NULL,
  INDEX cmsjobs_mail_attempts_job (job_uuid, id),
  INDEX cmsjobs_mail_attempts_created (created_at)
) ENGINE=InnoDB DEFAULT CHARSET=utf8mb4 COLLATE=utf8mb4_unicode_ci;
-- +goose StatementEnd

-- What was to be sent, kept only where the configuration says so.
-- +goose StatementBegin
CREATE TABLE IF NOT EXISTS cmsjobs_mail_payloads (
  job_uuid VARCHAR(191) CHARACTER SET utf8mb4 COLLATE utf8mb4_bin NOT NULL PRIMARY KEY,
  payload MEDIUMTEXT NOT NULL,
  created_at BIGINT NOT NULL,
  INDEX cmsjobs_mail_payloads_created (created_at)
) ENGINE=InnoDB DEFAULT CHARSET=utf8mb4 COLLATE=utf8mb4_unicode_ci;
-- +goose StatementEnd

-- Addresses that get no mail. expires_at 0 is never.
-- +goose StatementBegin
CREATE TABLE IF NOT EXISTS cmsjobs_mail_suppressions (
  recipient VARCHAR(254) CHARACTER SET utf8mb4 COLLATE utf8mb4_bin NOT NULL PRIMARY KEY,
  reason VARCHAR(32) NOT NULL,
  detail VARCHAR(500) NOT NULL,
  created_at BIGINT NOT NULL,
  expires_at BIGINT NOT NULL
) ENGINE=InnoDB DEFAULT CHARSET=utf8mb4 COLLATE=utf8mb4_unicode_ci;
-- +goose StatementEnd

-- Rate limits: one row a bucket, its counts as JSON.
-- +goose StatementBegin
CREATE TABLE IF NOT EXISTS cmsjobs_mail_limits (
  bucket VARCHAR(191) CHARACTER SET utf8mb4 COLLATE utf8mb4_bin NOT NULL PRIMARY KEY,
  counts VARCHAR(1000) NOT NULL,
  updated_at BIGINT NOT NULL
) ENGINE=InnoDB DEFAULT CHARSET=utf8mb4 COLLATE=utf8mb4_unicode_ci;
-- +goose StatementEnd

-- +goose Down
DROP TABLE IF EXISTS cmsjobs_mail_limits;
DROP TABLE IF EXISTS cmsjobs_mail_suppressions;
DROP TABLE IF EXISTS cmsjobs_mail_payloads;
DROP TABLE IF EXISTS cmsjobs_mail_attempts;
DROP TABLE IF EXISTS cmsjobs_mail;
