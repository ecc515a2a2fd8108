-- +goose Up
-- Wrong sign-ins are counted by address, and by account and address where the
-- account is known (class, address); rows end by themselves (expires_at).
ALTER TABLE cmsjobs_logins
  ADD COLUMN class VARCHAR(16) CHARACTER SET ascii COLLATE ascii_bin NOT NULL DEFAULT '',
  ADD COLUMN address VARCHAR(64) CHARACTER SET utf8mb4 COLLATE utf8mb4_bin NOT NULL DEFAULT '',
  ADD COLUMN expires_at BIGINT NOT NULL DEFAULT 0;
CREATE INDEX cmsjobs_logins_class ON cmsjobs_logins (class, since);
CREATE INDEX cmsjobs_logins_expires ON cmsjobs_logins (expires_at);

-- +goose Down
DROP INDEX cmsjobs_logins_expires ON cmsjobs_logins;
DROP INDEX cmsjobs_logins_class ON cmsjobs_logins;
ALTER TABLE cmsjobs_logins DROP COLUMN expires_at;
ALTER TABLE cmsjobs_logins DROP COLUMN address;
ALTER TABLE cmsjobs_logins DROP COLUMN class;
