-- +goose Up
-- Raw page views and events. The key is the order in which a roll-up reads: a day's
-- views, visitor by visitor, in the order of time. nonce tells views of one
-- millisecond apart and makes an import repeatable.
-- +goose StatementBegin
CREATE TABLE IF NOT EXISTS cmsjobs_page_views (
  day      CHAR(10)     NOT NULL, -- the CMS's calendar day, 2006-01-02
  visitor  BINARY(16)   NOT NULL, -- salted hash, of one day only
  at       BIGINT       NOT NULL, -- Unix milliseconds
  nonce    BINARY(8)    NOT NULL,
  site     VARCHAR(100) NOT NULL,
  path     VARCHAR(500) NOT NULL,
  referrer VARCHAR(191) NOT NULL, -- group: a host's name, or ''
  device   VARCHAR(16)  NOT NULL,
  browser  VARCHAR(40)  NOT NULL,
  os       VARCHAR(40)  NOT NULL,
  country  VARCHAR(2)   NOT NULL,
  campaign VARCHAR(191) NOT NULL,
  term     VARCHAR(191) NOT NULL, -- utm_term
  content  VARCHAR(191) NOT NULL, -- utm_content
  event    VARCHAR(64)  NOT NULL, -- its name; '' is a view
  kind     VARCHAR(8)   NOT NULL, -- 'view', 'event', 'bot' or 'spam'
  PRIMARY KEY (day, visitor, at, nonce),
  INDEX cmsjobs_page_views_nonce (day, nonce)
) ENGINE=InnoDB DEFAULT CHARSET=utf8mb4 COLLATE=utf8mb4_bin;
-- +goose StatementEnd

-- One row a day that has views. version grows with every batch of them, rolled
-- is the version that the roll-up holds, goals a digest of the goals that it counted:
-- a day is due while one of them differs.
-- +goose StatementBegin
CREATE TABLE IF NOT EXISTS cmsjobs_analytics_days (
  day       CHAR(10) NOT NULL PRIMARY KEY,
  version   BIGINT   NOT NULL,
  rolled    BIGINT   NOT NULL DEFAULT 0,
  goals     CHAR(16) NOT NULL DEFAULT '',
  rolled_at BIGINT   NULL,
  bad_rows  BIGINT   NOT NULL DEFAULT 0
) ENGINE=InnoDB DEFAULT CHARSET=utf8mb4 COLLATE=utf8mb4_bin;
-- +goose StatementEnd

-- +goose StatementBegin
CREATE TABLE IF NOT EXISTS cmsjobs_analytics_daily (
  site      VARCHAR(100) NOT NULL,
  day       CHAR(10)     NOT NULL,
  dimension VARCHAR(12)  NOT NULL,
  name      VARCHAR(500) NOT NULL,
  views     BIGINT       NOT NULL,
  visitors  BIGINT       NOT NULL,
  visits    BIGINT       NOT NULL,
  -- Of a goal or event, views are how often it was reached, visitors and visits by how many.
  -- bounces are visits of one view and no event. time_ms is how long visits lasted, from their
  -- first view to the last; of a page, how long it was until the next view, in
  -- those views (timed) that had one.
  bounces BIGINT NOT NULL DEFAULT 0,
  time_ms BIGINT NOT NULL DEFAULT 0,
  timed BIGINT NOT NULL DEFAULT 0,
  PRIMARY KEY (day, site, dimension, name)
) ENGINE=InnoDB DEFAULT CHARSET=utf8mb4 COLLATE=utf8mb4_bin;
-- +goose StatementEnd

-- +goose StatementBegin
CREATE TABLE IF NOT EXISTS cmsjobs_analytics_hourly (
  site     VARCHAR(100) NOT NULL,
  day      CHAR(10)     NOT NULL,
  hour     BIGINT       NOT NULL, -- Unix seconds of its first moment
  views    BIGINT       NOT NULL,
  visitors BIGINT       NOT NULL,
  visits   BIGINT       NOT NULL, -- that began in it, as what follows
  bounces  BIGINT       NOT NULL,
  time_ms  BIGINT       NOT NULL,
  PRIMARY KEY (day, site, hour)
) ENGINE=InnoDB DEFAULT CHARSET=utf8mb4 COLLATE=utf8mb4_bin;
-- +goose StatementEnd

-- Salts of visitor hashes; destroyed 48 hours after their day began.
-- +goose StatementBegin
CREATE TABLE IF NOT EXISTS cmsjobs_analytics_salts (
  day     CHAR(10)  NOT NULL PRIMARY KEY,
  salt    VARBINARY(32) NOT NULL,
  expires BIGINT    NOT NULL
) ENGINE=InnoDB DEFAULT CHARSET=utf8mb4 COLLATE=utf8mb4_bin;
-- +goose StatementEnd

-- The counters of posts.views at the end of the last run, for the last resort.
-- +goose StatementBegin
CREATE TABLE IF NOT EXISTS cmsjobs_analytics_counters (
  entity VARCHAR(100) NOT NULL PRIMARY KEY,
  views  BIGINT NOT NULL
) ENGINE=InnoDB DEFAULT CHARSET=utf8mb4 COLLATE=utf8mb4_bin;
-- +goose StatementEnd

-- An import finds the views that are stored by day and nonce, which is a digest
-- of their content.

-- How far a log was read, by a digest of its beginning (64 KiB), and a digest of
-- the 64 KiB that follow the position. A log that is imported again is read from there.
-- +goose StatementBegin
CREATE TABLE IF NOT EXISTS cmsjobs_analytics_imports (
  id       CHAR(64) NOT NULL PRIMARY KEY,
  read_to  BIGINT   NOT NULL,
  digest   CHAR(64) NOT NULL,
  oldest   BIGINT   NOT NULL,
  read_at  BIGINT   NOT NULL
) ENGINE=InnoDB DEFAULT CHARSET=utf8mb4 COLLATE=utf8mb4_bin;
-- +goose StatementEnd

-- +goose Down
DROP TABLE IF EXISTS cmsjobs_analytics_imports;
DROP TABLE IF EXISTS cmsjobs_analytics_counters;
DROP TABLE IF EXISTS cmsjobs_analytics_salts;
DROP TABLE IF EXISTS cmsjobs_analytics_hourly;
DROP TABLE IF EXISTS cmsjobs_analytics_daily;
DROP TABLE IF EXISTS cmsjobs_analytics_days;
DROP TABLE IF EXISTS cmsjobs_page_views;
