package cache

import (
	"crypto/tls"
	"errors"
	"fmt"
	"net"
	"strconv"
	"strings"

	"github.com/redis/go-redis/v9"

	"github.com/cmsjobs/cmsjobs/internal/cms/laravel"
)

// redisOptions name a server as Laravel does: its URL, else its parts.
func redisOptions(server laravel.RedisServer) (*redis.Options, error) {
	database, err := strconv.Atoi(server.Database)
	if err != nil {
		return nil, fmt.Errorf("the number of the CMS's Redis database is %q, which is no number", server.Database)
	}
	if server.URL != "" {
		o, err := redis.ParseURL(server.URL)
		if err != nil {
			return nil, errors.New("REDIS_URL in the CMS's .env is no redis:// address") // the URL may hold a password
		}
		if !strings.Contains(strings.TrimPrefix(strings.TrimPrefix(server.URL, "rediss://"), "redis://"), "/") {
			o.DB = database
		}
		return o, nil
	}
	o := &redis.Options{Network: "tcp", Username: server.Username, Password: server.Password, DB: database}
	host := strings.TrimPrefix(strings.TrimPrefix(server.Host, "unix://"), "tcp://")
	if name, encrypted := strings.CutPrefix(host, "tls://"); encrypted {
		host, o.TLSConfig = name, &tls.Config{ServerName: name, MinVersion: tls.VersionTLS12}
	}
	if strings.HasPrefix(host, "/") {
		o.Network, o.Addr = "unix", host
	} else {
		o.Addr = net.JoinHostPort(strings.Trim(host, "[]"), server.Port)
	}
	return o, nil
}
