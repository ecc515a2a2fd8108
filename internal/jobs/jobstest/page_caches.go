package jobstest

import (
	"fmt"
	"net"
	"os"
	"path/filepath"
	"testing"
	"time"
)

// purgingVCL keeps every page for an hour and purges as the VCL of most CMS
// plugins does: PURGE an address, or with X-Purge-Method: regex what matches it.
const purgingVCL = `vcl 4.1;
import std;
backend default { .host = "127.0.0.1"; .port = "%s"; }
acl owner { "127.0.0.1"; }
sub vcl_recv {
  if (req.method == "PURGE") {
    if (!client.ip ~ owner) { return (synth(405, "not from here")); }
    if (req.http.X-Purge-Method == "regex") { ban("req.url ~ " + req.url); return (synth(200, "purged")); }
    return (purge);
  }
  return (hash);
}
sub vcl_backend_response { set beresp.ttl = 1h; set beresp.grace = 0s; }
sub vcl_deliver { set resp.http.X-Cached = obj.hits; }
`

// Varnish starts a Varnish of the test's own in front of a server of this host.
func Varnish(t testing.TB, origin string) *Server {
	t.Helper()
	daemon, err := program("varnishd")
	if err != nil {
		Skip(t, "Varnish: %v", err)
	}
	return pageCache(t, "varnish", func(s *Server, port string) error {
		vcl := filepath.Join(s.Dir, "site.vcl")
		s.args = []string{daemon, "-F", "-j", "none", "-n", filepath.Join(s.Dir, "work"), "-f", vcl,
			"-a", fmt.Sprintf("127.0.0.1:%d", s.Port), "-s", "malloc,16m", "-p", "thread_pool_min=5"}
		return os.WriteFile(vcl, fmt.Appendf(nil, purgingVCL, port), 0o644)
	}, origin)
}

// nginxConf keeps every page for an hour; the location of purges is nginx's usual.
const nginxConf = `load_module /usr/lib/nginx/modules/ngx_http_cache_purge_module.so;
user root; daemon off; pid %[1]s/nginx.pid; error_log %[1]s/error.log;
events { worker_connections 64; }
http {
  access_log off;
  client_body_temp_path %[1]s/body; proxy_temp_path %[1]s/proxy; fastcgi_temp_path %[1]s/f;
  uwsgi_temp_path %[1]s/u; scgi_temp_path %[1]s/s;
  proxy_cache_path %[1]s/cache keys_zone=site:1m;
  server {
    listen 127.0.0.1:%[2]d;
    location ~ /purge(/.*) { allow 127.0.0.1; deny all; proxy_cache_purge site "$host$1$is_args$args"; }
    location / {
      proxy_pass http://127.0.0.1:%[3]s; proxy_set_header Host $host; proxy_cache site; proxy_cache_valid any 1h;
      proxy_cache_key "$host$request_uri"; add_header X-Cached $upstream_cache_status;
    }
  }
}
`

// Nginx starts an nginx of the test's own with the module ngx_cache_purge, in
// front of a server of this host. Purges are requests below /purge.
func Nginx(t testing.TB, origin string) *Server {
	t.Helper()
	daemon, err := program("nginx")
	if err != nil {
		Skip(t, "nginx: %v", err)
	}
	if _, err := os.Stat("/usr/lib/nginx/modules/ngx_http_cache_purge_module.so"); err != nil {
		Skip(t, "nginx: %v", err)
	}
	return pageCache(t, "nginx", func(s *Server, port string) error {
		conf := filepath.Join(s.Dir, "nginx.conf")
		s.args = []string{daemon, "-p", s.Dir, "-c", conf, "-e", filepath.Join(s.Dir, "error.log")}
		return os.WriteFile(conf, fmt.Appendf(nil, nginxConf, s.Dir, s.Port, port), 0o644)
	}, origin)
}

// pageCache starts a proxy that prepare has set up for the port of the origin.
func pageCache(t testing.TB, name string, prepare func(s *Server, port string) error, origin string) *Server {
	t.Helper()
	_, port, err := net.SplitHostPort(origin)
	if err != nil {
		t.Fatalf("the origin's address: %v", err)
	}
	dir, err := privateDir(name, nil)
	if err != nil {
		t.Fatal(err)
	}
	s := &Server{Dir: dir}
	if s.Port, err = freePort(); err != nil {
		t.Fatal(err)
	}
	if err := prepare(s, port); err != nil {
		t.Fatal(err)
	}
	s.ready = s.accepts
	t.Cleanup(s.Stop)
	if err := s.Start(); err != nil {
		t.Fatalf("starting %s: %v", name, err)
	}
	return s
}

// accepts says whether the server takes connections.
func (s *Server) accepts() error {
	c, err := net.DialTimeout("tcp", fmt.Sprintf("127.0.0.1:%d", s.Port), time.Second)
	if err != nil {
		return err
	}
	return c.Close()
}
