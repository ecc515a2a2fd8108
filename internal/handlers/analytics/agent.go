package analytics

import (
	"strings"

	useragent "github.com/medama-io/go-useragent"
)

// agents reads user agents. It is safe for use by many goroutines.
type agents struct{ parser *useragent.Parser }

func newAgents() agents { return agents{useragent.NewParser()} }

// client is what an agent says about its visitor.
type client struct {
	device, browser, os string
	bot                 bool
}

// maxAgent bounds what is read of an agent; longer ones are made up.
const maxAgent = 1024

func (a agents) read(agent string) client {
	if len(agent) > maxAgent {
		agent = agent[:maxAgent]
	}
	if isBot(agent) {
		return client{bot: true}
	}
	ua := a.parser.Parse(agent)
	c := client{browser: clean(string(ua.Browser()), 40), os: clean(string(ua.OS()), 40), bot: ua.IsBot()}
	switch {
	case ua.IsTablet():
		c.device = "tablet"
	case ua.IsMobile():
		c.device = "mobile"
	case ua.IsTV():
		c.device = "tv"
	case ua.IsDesktop():
		c.device = "desktop"
	}
	return c
}

// botWords stand in the agents of programs. The list is short on purpose: a
// word that a browser's agent carries would hide people.
var botWords = []string{
	"bot", "crawl", "spider", "slurp", "archiver", "fetch", "scan", "monitor", "check", "preview", "validator", "feed",
	"rss",
	"curl/", "wget/", "python", "java/", "go-http-client", "okhttp", "axios", "node-fetch", "undici", "libwww",
	"httpclient", "http_request",
	"perl", "ruby", "php/", "guzzle", "scrapy", "headless", "phantomjs", "puppeteer", "playwright", "selenium",
	"lighthouse", "pagespeed",
	"pingdom", "uptime", "statuscake", "gtmetrix", "datadog", "newrelic", "facebookexternalhit", "whatsapp/",
	"telegrambot", "skypeuri",
	"embedly", "quora link", "outbrain", "vkshare", "w3c_", "nmap", "masscan", "zgrab", "nikto", "sqlmap", "ahrefs",
	"semrush", "mj12",
	"google-", "apis-google", "mediapartners", "adsbot", "bingpreview", "yandeximages", "gptbot", "chatgpt-user",
	"claude-web", "anthropic",
	"perplexity", "cohere-ai", "bytespider", "ccbot", "dataprovider", "netcraft", "internetmeasurement", "expanse",
	"censys",
}

// isBot knows programs by their agent. No agent at all is a program's.
func isBot(agent string) bool {
	if len(agent) < 12 {
		return true
	}
	lower := strings.ToLower(agent)
	for _, word := range botWords {
		if strings.Contains(lower, word) && !strings.Contains(lower, "cubot") {
			return true
		}
	}
	return false
}
