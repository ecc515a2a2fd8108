-- +goose Up
-- Wrong sign-ins are counted by address, and by account and address where the
-- account is known (class, address); rows end by themselves (expires_at).
ALTER TABLE cmsjobs_logins ADD COLUMN class VARCHAR(16) NOT NULL DEFAULT '';
ALTER TABLE cmsjobs_logins ADD COLUMN address VARCHAR(64) NOT NULL DEFAULT '';
ALTER TABLE cmsjobs_logins ADD COLUMN expires_at BIGINT NOT NULL DEFAULT 0;
CREATE INDEX cmsjobs_logins_class ON cmsjobs_logins (class, since);
CREATE INDEX cmsjobs_logins_expires ON cmsjobs_logins (expires_at);

-- +goose Down
DROP INDEX cmsjobs_logins_expires;
DROP INDEX cmsjobs_logins_class;
ALTER TABLE cmsjobs_logins DROP COLUMN expires_at;
ALTER TABLE cmsjobs_logins DROP COLUMN address;
ALTER TABLE cmsjobs_logins DROP COLUMN class;
