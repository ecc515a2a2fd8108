package feed

import (
	"context"
	"errors"
	"maps"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"

	"github.com/cmsjobs/cmsjobs/internal/database"
)

// connectPostgres opens a connection of a feed's own.
func connectPostgres(ctx context.Context, dsn string, parameters map[string]string) (*pgx.Conn, error) {
	ctx, cancel := context.WithTimeout(ctx, lookTime)
	defer cancel()
	config, err := postgresConfig(dsn)
	if err != nil {
		return nil, err
	}
	database.BoundPostgres(config)
	config.DefaultQueryExecMode = pgx.QueryExecModeExec
	config.RuntimeParams["application_name"] = "cmsjobs feed"
	maps.Copy(config.RuntimeParams, parameters)
	c, err := pgx.ConnectConfig(ctx, config)
	if err != nil {
		return nil, database.Explain("connecting for the change feed", err)
	}
	return c, nil
}

func postgresConfig(dsn string) (*pgx.ConnConfig, error) {
	driver, err := database.DriverDSN(dsn)
	if err != nil {
		return nil, err
	}
	config, err := pgx.ParseConfig(driver)
	if err != nil { // it may repeat the password
		return nil, errors.New("the DSN of the change feed cannot be read")
	}
	return config, nil
}

// hangUp closes a connection. Nothing is lost; a temporary slot goes with it.
func hangUp(ctx context.Context, c *pgconn.PgConn) {
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), time.Second)
	defer cancel()
	_ = c.Close(ctx)
}
