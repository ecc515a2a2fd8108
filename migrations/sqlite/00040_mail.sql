-- +goose Up
-- The ledger: one row for each recipient of each job. Times are Unix milliseconds.
-- +goose StatementBegin
CREATE TABLE cmsjobs_mail (
  id INTEGER PRIMARY KEY AUTOINCREMENT,
  job_uuid VARCHAR(191) NOT NULL,
  recipient VARCHAR(254) NOT NULL,
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
  updated_at BIGINT NOT NULL
);
-- +goose StatementEnd
CREATE UNIQUE INDEX cmsjobs_mail_once ON cmsjobs_mail (job_uuid, recipient);
CREATE INDEX cmsjobs_mail_status ON cmsjobs_mail (status, id);
CREATE INDEX cmsjobs_mail_recipient ON cmsjobs_mail (recipient, id);
CREATE INDEX cmsjobs_mail_created ON cmsjobs_mail (created_at);
CREATE INDEX cmsjobs_mail_message ON cmsjobs_mail (message_id);

-- Every attempt, one row a recipient.
-- +goose StatementBegin
CREATE TABLE cmsjobs_mail_attempts (
  id INTEGER PRIMARY KEY AUTOINCREMENT,
  job_uuid VARCHAR(191) NOT NULL,
  recipient VARCHAR(254) NOT NULL,
  attempt INT NOT NULL,
  status VARCHAR(16) NOT NULL,
  driver VARCHAR(16) NOT NULL,
  host VARCHAR(255) NOT NULL,
  code INT NOT NULL,
  answer VARCHAR(500) NOT NULL,
  duration_ms BIGINT NOT NULL,
  created_at BIGINT NOT NULL
);
-- +goose StatementEnd
CREATE INDEX cmsjobs_mail_attempts_job ON cmsjobs_mail_attempts (job_uuid, id);
CREATE INDEX cmsjobs_mail_attempts_created ON cmsjobs_mail_attempts (created_at);

-- What was to be sent, kept only where the configuration says so.
-- +goose StatementBegin
CREATE TABLE cmsjobs_mail_payloads (
  job_uuid VARCHAR(191) NOT NULL PRIMARY KEY,
  payload TEXT NOT NULL,
  created_at BIGINT NOT NULL
);
-- +goose StatementEnd
CREATE INDEX cmsjobs_mail_payloads_created ON cmsjobs_mail_payloads (created_at);

-- Addresses that get no mail. expires_at 0 is never.
-- +goose StatementBegin
CREATE TABLE cmsjobs_mail_suppressions (
  recipient VARCHAR(254) NOT NULL PRIMARY KEY,
  reason VARCHAR(32) NOT NULL,
  detail VARCHAR(500) NOT NULL,
  created_at BIGINT NOT NULL,
  expires_at BIGINT NOT NULL
);
-- +goose StatementEnd

-- Rate limits: one row a bucket, its counts as JSON.
-- +goose StatementBegin
CREATE TABLE cmsjobs_mail_limits (
  bucket VARCHAR(191) NOT NULL PRIMARY KEY,
  counts VARCHAR(1000) NOT NULL,
  updated_at BIGINT NOT NULL
);
-- +goose StatementEnd

-- +goose Down
DROP TABLE cmsjobs_mail_limits;
DROP TABLE cmsjobs_mail_suppressions;
DROP TABLE cmsjobs_mail_payloads;
DROP TABLE cmsjobs_mail_attempts;
DROP TABLE cmsjobs_mail;
