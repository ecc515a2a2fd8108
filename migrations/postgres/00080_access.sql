-- +goose Up
-- Who may use the web: tokens, sessions, counts of wrong sign-ins, keys of
-- repeated requests, and the audit log of what people did. Times are Unix
-- milliseconds. Secrets are stored as SHA-256 in hexadecimal only.
-- +goose StatementBegin
CREATE TABLE cmsjobs_tokens (
  id         VARCHAR(32) NOT NULL PRIMARY KEY,
  name       VARCHAR(191) NOT NULL,
  hash       CHAR(64) NOT NULL UNIQUE,
  scopes     VARCHAR(191) NOT NULL,
  types      TEXT NOT NULL,
  created_by VARCHAR(191) NOT NULL,
  created_at BIGINT NOT NULL,
  expires_at BIGINT NOT NULL DEFAULT 0,
  used_at    BIGINT NOT NULL DEFAULT 0,
  revoked_at BIGINT NOT NULL DEFAULT 0
);
-- +goose StatementEnd

-- +goose StatementBegin
CREATE TABLE cmsjobs_sessions (
  hash       CHAR(64) NOT NULL PRIMARY KEY,
  account    VARCHAR(191) NOT NULL,
  source     VARCHAR(32) NOT NULL,
  role       VARCHAR(32) NOT NULL,
  address    VARCHAR(64) NOT NULL,
  agent      VARCHAR(191) NOT NULL,
  created_at BIGINT NOT NULL,
  seen_at    BIGINT NOT NULL
);
-- +goose StatementEnd
CREATE INDEX cmsjobs_sessions_seen ON cmsjobs_sessions (seen_at);

-- +goose StatementBegin
CREATE TABLE cmsjobs_logins (
  subject  CHAR(64) NOT NULL PRIMARY KEY,
  failures INT NOT NULL,
  since    BIGINT NOT NULL,
  -- Wrong sign-ins are counted by address, and by account and address where the
  -- account is known (class, address); rows end by themselves (expires_at).
  class VARCHAR(16) NOT NULL DEFAULT '',
  address VARCHAR(64) NOT NULL DEFAULT '',
  expires_at BIGINT NOT NULL DEFAULT 0
);
-- +goose StatementEnd

-- +goose StatementBegin
CREATE TABLE cmsjobs_idempotency (
  id         CHAR(64) NOT NULL PRIMARY KEY,
  body       CHAR(64) NOT NULL,
  uuid       VARCHAR(64) NOT NULL,
  answer     TEXT NULL,
  created_at BIGINT NOT NULL
);
-- +goose StatementEnd
CREATE INDEX cmsjobs_idempotency_created ON cmsjobs_idempotency (created_at);

-- +goose StatementBegin
CREATE TABLE cmsjobs_audit (
  id      BIGINT GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
  at      BIGINT NOT NULL,
  actor   VARCHAR(191) NOT NULL,
  via     VARCHAR(191) NOT NULL,
  address VARCHAR(64) NOT NULL,
  action  VARCHAR(191) NOT NULL,
  target  VARCHAR(191) NOT NULL,
  status  INT NOT NULL,
  detail  TEXT NOT NULL
);
-- +goose StatementEnd
CREATE INDEX cmsjobs_audit_at ON cmsjobs_audit (at);
CREATE INDEX cmsjobs_audit_target ON cmsjobs_audit (target, id);
CREATE INDEX cmsjobs_logins_class ON cmsjobs_logins (class, since);
CREATE INDEX cmsjobs_logins_expires ON cmsjobs_logins (expires_at);

-- +goose Down
DROP TABLE cmsjobs_audit;
DROP TABLE cmsjobs_idempotency;
DROP TABLE cmsjobs_logins;
DROP TABLE cmsjobs_sessions;
DROP TABLE cmsjobs_tokens;
