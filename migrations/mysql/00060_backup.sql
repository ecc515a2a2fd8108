-- +goose Up
-- One row a backup, made or tried. Times are Unix milliseconds. The archives' own
-- sidecars stay the truth about what exists: this table knows what was tried, and
-- what was proven.
CREATE TABLE cmsjobs_backups (
  id VARCHAR(191) CHARACTER SET utf8mb4 COLLATE utf8mb4_bin NOT NULL PRIMARY KEY,
  status VARCHAR(16) NOT NULL,
  started_at BIGINT NOT NULL,
  finished_at BIGINT NOT NULL,
  archive_sha256 VARCHAR(64) NOT NULL,
  proven_at BIGINT NOT NULL,
  report MEDIUMTEXT NOT NULL
) ENGINE=InnoDB DEFAULT CHARSET=utf8mb4 COLLATE=utf8mb4_unicode_ci;
CREATE INDEX cmsjobs_backups_started ON cmsjobs_backups (started_at);

-- One row each time a backup was read back. level says how far: bytes, parsed or
-- restored.
CREATE TABLE cmsjobs_backup_proofs (
  id VARCHAR(191) CHARACTER SET utf8mb4 COLLATE utf8mb4_bin NOT NULL PRIMARY KEY,
  backup_id VARCHAR(191) CHARACTER SET utf8mb4 COLLATE utf8mb4_bin NOT NULL,
  destination VARCHAR(191) CHARACTER SET utf8mb4 COLLATE utf8mb4_bin NOT NULL,
  level VARCHAR(16) NOT NULL,
  ok INT NOT NULL,
  finished_at BIGINT NOT NULL,
  proof MEDIUMTEXT NOT NULL
) ENGINE=InnoDB DEFAULT CHARSET=utf8mb4 COLLATE=utf8mb4_unicode_ci;
CREATE INDEX cmsjobs_backup_proofs_backup ON cmsjobs_backup_proofs (backup_id, finished_at);

-- Holds off a second backup while one runs, wherever in the fleet. It is free when
-- expires_at has passed.
CREATE TABLE cmsjobs_backup_lock (
  name VARCHAR(191) CHARACTER SET utf8mb4 COLLATE utf8mb4_bin NOT NULL PRIMARY KEY,
  holder VARCHAR(64) NOT NULL,
  expires_at BIGINT NOT NULL
) ENGINE=InnoDB DEFAULT CHARSET=utf8mb4 COLLATE=utf8mb4_unicode_ci;

-- +goose Down
DROP TABLE cmsjobs_backup_lock;
DROP TABLE cmsjobs_backup_proofs;
DROP TABLE cmsjobs_backups;
