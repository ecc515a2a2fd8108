-- +goose Up
-- One row a backup, made or tried. Times are Unix milliseconds. The archives' own
-- manifest files stay the truth about what exists: this table knows what was tried, and
-- what was verified.
-- +goose StatementBegin
CREATE TABLE cmsjobs_backups (
  id VARCHAR(191) NOT NULL PRIMARY KEY,
  status VARCHAR(16) NOT NULL,
  started_at BIGINT NOT NULL,
  finished_at BIGINT NOT NULL,
  archive_sha256 VARCHAR(64) NOT NULL,
  verified_at BIGINT NOT NULL,
  report TEXT NOT NULL,
  -- Who asked: schedule, job, command or restore; and which job or person.
  source VARCHAR(16) NOT NULL DEFAULT '',
  asked_by VARCHAR(191) NOT NULL DEFAULT ''
);
-- +goose StatementEnd
CREATE INDEX cmsjobs_backups_started ON cmsjobs_backups (started_at);

-- One row each time a backup was read back. level says how far: bytes, parsed or
-- restored.
-- +goose StatementBegin
CREATE TABLE cmsjobs_backup_verifications (
  id VARCHAR(191) NOT NULL PRIMARY KEY,
  backup_id VARCHAR(191) NOT NULL,
  destination VARCHAR(191) NOT NULL,
  level VARCHAR(16) NOT NULL,
  ok INT NOT NULL,
  finished_at BIGINT NOT NULL,
  report TEXT NOT NULL,
  -- 1 when the verification says something about the backup, 0 when it could not be done:
  -- the destination did not answer, or the time ran out.
  conclusive INT NOT NULL DEFAULT 1
);
-- +goose StatementEnd
CREATE INDEX cmsjobs_backup_verifications_backup ON cmsjobs_backup_verifications (backup_id, finished_at);

-- Holds off a second backup, restore or prune while one runs, wherever in the
-- fleet, and names the temporary databases that verifications use. Times are Unix
-- milliseconds of the database's clock. A row is free when expires_at has passed;
-- its holder renews it.
-- +goose StatementBegin
CREATE TABLE cmsjobs_backup_locks (
  name VARCHAR(191) NOT NULL PRIMARY KEY,
  holder VARCHAR(64) NOT NULL,
  host VARCHAR(191) NOT NULL,
  purpose VARCHAR(191) NOT NULL,
  started_at BIGINT NOT NULL,
  expires_at BIGINT NOT NULL
);
-- +goose StatementEnd

-- The keys that sign manifest files. The private key never leaves this table:
-- dumps hold the table without its rows.
-- +goose StatementBegin
CREATE TABLE cmsjobs_backup_keys (
  name VARCHAR(32) NOT NULL PRIMARY KEY,
  private_key VARCHAR(191) NOT NULL,
  made_at BIGINT NOT NULL
);
-- +goose StatementEnd

-- What the manifest files at the destinations say, so that a list need not read
-- them all. A row is valid while size, modified and tag of the file are the same.
-- +goose StatementBegin
CREATE TABLE cmsjobs_backup_index (
  destination VARCHAR(64) NOT NULL,
  object_key VARCHAR(191) NOT NULL,
  size BIGINT NOT NULL,
  modified_at BIGINT NOT NULL,
  tag VARCHAR(191) NOT NULL,
  entry TEXT NOT NULL,
  PRIMARY KEY (destination, object_key)
);
-- +goose StatementEnd

-- Restores of the site that have neither succeeded nor been rolled back: usually
-- none. A row is written before the first change. phase is loading, ready, exchanged,
-- published or undoing; detail says, as JSON, what was loaded beside the site and what
-- follows.
-- +goose StatementBegin
CREATE TABLE cmsjobs_backup_restores (
  id VARCHAR(32) NOT NULL PRIMARY KEY,
  backup_id VARCHAR(191) NOT NULL,
  host VARCHAR(191) NOT NULL,
  phase VARCHAR(16) NOT NULL,
  started_at BIGINT NOT NULL,
  detail TEXT NOT NULL
);
-- +goose StatementEnd

-- +goose Down
DROP TABLE cmsjobs_backup_restores;
DROP TABLE cmsjobs_backup_index;
DROP TABLE cmsjobs_backup_keys;
DROP TABLE cmsjobs_backup_locks;
DROP TABLE cmsjobs_backup_verifications;
DROP TABLE cmsjobs_backups;
