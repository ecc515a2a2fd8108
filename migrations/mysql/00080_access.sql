-- +goose Up
-- Who may use the web: tokens, sessions, counts of wrong sign-ins, keys of
-- repeated requests, and the audit log of what people did. Times are Unix
-- milliseconds. Secrets are stored as SHA-256 in hexadecimal only.
-- +goose StatementBegin
CREATE TABLE IF NOT EXISTS cmsjobs_tokens (
  id         VARCHAR(32) NOT NULL PRIMARY KEY,
  name       VARCHAR(191) NOT NULL,
  hash       CHAR(64) CHARACTER SET ascii COLLATE ascii_bin NOT NULL UNIQUE,
  scopes     VARCHAR(191) NOT NULL,
  types      LONGTEXT NOT NULL,
  created_by VARCHAR(191) NOT NULL,
  created_at BIGINT NOT NULL,
  expires_at BIGINT NOT NULL DEFAULT 0,
  used_at    BIGINT NOT NULL DEFAULT 0,
  revoked_at BIGINT NOT NULL DEFAULT 0
) ENGINE=InnoDB DEFAULT CHARSET=utf8mb4 COLLATE=utf8mb4_unicode_ci;
-- +goose StatementEnd

-- +goose StatementBegin
CREATE TABLE IF NOT EXISTS cmsjobs_sessions (
  hash       CHAR(64) CHARACTER SET ascii COLLATE ascii_bin NOT NULL PRIMARY KEY,
  account    VARCHAR(191) NOT NULL,
  source     VARCHAR(32) NOT NULL,
  role       VARCHAR(32) NOT NULL,
  address    VARCHAR(64) NOT NULL,
  agent      VARCHAR(191) NOT NULL,
  created_at BIGINT NOT NULL,
  seen_at    BIGINT NOT NULL,
  INDEX cmsjobs_sessions_seen (seen_at)
) ENGINE=InnoDB DEFAULT CHARSET=utf8mb4 COLLATE=utf8mb4_unicode_ci;
-- +goose StatementEnd

-- +goose StatementBegin
CREATE TABLE IF NOT EXISTS cmsjobs_logins (
  subject  CHAR(64) CHARACTER SET ascii COLLATE ascii_bin NOT NULL PRIMARY KEY,
  failures INT NOT NULL,
  since    BIGINT NOT NULL,
  -- Wrong sign-ins are counted by address, and by account and address where the
  -- account is known (class, address); rows end by themselves (expires_at).
  class VARCHAR(16) CHARACTER SET ascii COLLATE ascii_bin NOT NULL DEFAULT '',
  address VARCHAR(64) CHARACTER SET utf8mb4 COLLATE utf8mb4_bin NOT NULL DEFAULT '',
  expires_at BIGINT NOT NULL DEFAULT 0,
  INDEX cmsjobs_logins_class (class, since),
  INDEX cmsjobs_logins_expires (expires_at)
) ENGINE=InnoDB DEFAULT CHARSET=utf8mb4 COLLATE=utf8mb4_unicode_ci;
-- +goose StatementEnd

-- +goose StatementBegin
CREATE TABLE IF NOT EXISTS cmsjobs_idempotency (
  id         CHAR(64) CHARACTER SET ascii COLLATE ascii_bin NOT NULL PRIMARY KEY,
  body       CHAR(64) CHARACTER SET ascii COLLATE ascii_bin NOT NULL,
  uuid       VARCHAR(64) NOT NULL,
  answer     LONGTEXT NULL,
  created_at BIGINT NOT NULL,
  INDEX cmsjobs_idempotency_created (created_at)
) ENGINE=InnoDB DEFAULT CHARSET=utf8mb4 COLLATE=utf8mb4_unicode_ci;
-- +goose StatementEnd

-- +goose StatementBegin
CREATE TABLE IF NOT EXISTS cmsjobs_audit (
  id      BIGINT UNSIGNED NOT NULL AUTO_INCREMENT PRIMARY KEY,
  at      BIGINT NOT NULL,
  actor   VARCHAR(191) NOT NULL,
  via     VARCHAR(191) NOT NULL,
  address VARCHAR(64) NOT NULL,
  action  VARCHAR(191) NOT NULL,
  target  VARCHAR(191) NOT NULL,
  status  INT NOT NULL,
  detail  LONGTEXT NOT NULL,
  INDEX cmsjobs_audit_at (at),
  INDEX cmsjobs_audit_target (target, id)
) ENGINE=InnoDB DEFAULT CHARSET=utf8mb4 COLLATE=utf8mb4_unicode_ci;
-- +goose StatementEnd

-- +goose Down
DROP TABLE IF EXISTS cmsjobs_audit;
DROP TABLE IF EXISTS cmsjobs_idempotency;
DROP TABLE IF EXISTS cmsjobs_logins;
DROP TABLE IF EXISTS cmsjobs_sessions;
DROP TABLE IF EXISTS cmsjobs_tokens;
