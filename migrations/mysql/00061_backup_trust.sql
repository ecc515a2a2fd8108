-- +goose Up
-- Holds off a second backup, restore or prune while one runs, wherever in the
-- fleet, and names the temporary databases that proofs use. Times are Unix
-- milliseconds of the database's clock. A row is free when expires_at has passed;
-- its holder renews it.
CREATE TABLE cmsjobs_backup_locks (
  name VARCHAR(191) CHARACTER SET utf8mb4 COLLATE utf8mb4_bin NOT NULL PRIMARY KEY,
  holder VARCHAR(64) CHARACTER SET utf8mb4 COLLATE utf8mb4_bin NOT NULL,
  host VARCHAR(191) NOT NULL,
  purpose VARCHAR(191) NOT NULL,
  started_at BIGINT NOT NULL,
  expires_at BIGINT NOT NULL
) ENGINE=InnoDB DEFAULT CHARSET=utf8mb4 COLLATE=utf8mb4_unicode_ci;
DROP TABLE cmsjobs_backup_lock;

-- The keys that sign manifest files. The private key never leaves this table:
-- dumps hold the table without its rows.
CREATE TABLE cmsjobs_backup_keys (
  name VARCHAR(32) NOT NULL PRIMARY KEY,
  private_key VARCHAR(191) CHARACTER SET utf8mb4 COLLATE utf8mb4_bin NOT NULL,
  made_at BIGINT NOT NULL
) ENGINE=InnoDB DEFAULT CHARSET=utf8mb4 COLLATE=utf8mb4_unicode_ci;

-- What the manifest files at the destinations say, so that a list need not read
-- them all. A row is valid while size, modified and tag of the file are the same.
CREATE TABLE cmsjobs_backup_index (
  destination VARCHAR(64) CHARACTER SET utf8mb4 COLLATE utf8mb4_bin NOT NULL,
  object_key VARCHAR(191) CHARACTER SET utf8mb4 COLLATE utf8mb4_bin NOT NULL,
  size BIGINT NOT NULL,
  modified_at BIGINT NOT NULL,
  tag VARCHAR(191) CHARACTER SET utf8mb4 COLLATE utf8mb4_bin NOT NULL,
  entry MEDIUMTEXT NOT NULL,
  PRIMARY KEY (destination, object_key)
) ENGINE=InnoDB DEFAULT CHARSET=utf8mb4 COLLATE=utf8mb4_unicode_ci;

-- 1 when the proof says something about the backup, 0 when it could not be done:
-- the destination did not answer, or the time ran out.
ALTER TABLE cmsjobs_backup_proofs ADD COLUMN conclusive INT NOT NULL DEFAULT 1;
-- Who asked: schedule, job, command or restore; and which job or person.
ALTER TABLE cmsjobs_backups ADD COLUMN source VARCHAR(16) NOT NULL DEFAULT '';
ALTER TABLE cmsjobs_backups ADD COLUMN asked_by VARCHAR(191) NOT NULL DEFAULT '';

-- +goose Down
ALTER TABLE cmsjobs_backups DROP COLUMN asked_by;
ALTER TABLE cmsjobs_backups DROP COLUMN source;
ALTER TABLE cmsjobs_backup_proofs DROP COLUMN conclusive;
DROP TABLE cmsjobs_backup_index;
DROP TABLE cmsjobs_backup_keys;
DROP TABLE cmsjobs_backup_locks;
CREATE TABLE cmsjobs_backup_lock (
  name VARCHAR(191) CHARACTER SET utf8mb4 COLLATE utf8mb4_bin NOT NULL PRIMARY KEY,
  holder VARCHAR(64) NOT NULL,
  expires_at BIGINT NOT NULL
) ENGINE=InnoDB DEFAULT CHARSET=utf8mb4 COLLATE=utf8mb4_unicode_ci;
