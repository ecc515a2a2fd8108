package outbound

import "net/netip"

// special are the ranges of IANA's special-purpose registries (RFC 6890 and
// its successors) that are no public hosts. IPv6 is the other way round: what
// is outside 2000::/3 is special as a whole.
var special = prefixes(
	"0.0.0.0/8",       // "this network"
	"10.0.0.0/8",      // private
	"100.64.0.0/10",   // carrier-grade NAT
	"127.0.0.0/8",     // loopback
	"169.254.0.0/16",  // link-local, clouds' metadata services
	"172.16.0.0/12",   // private
	"192.0.0.0/24",    // IETF protocols
	"192.0.2.0/24",    // documentation
	"192.88.99.0/24",  // 6to4 relays
	"192.168.0.0/16",  // private
	"198.18.0.0/15",   // benchmarks
	"198.51.100.0/24", // documentation
	"203.0.113.0/24",  // documentation
	"224.0.0.0/4",     // multicast
	"240.0.0.0/4",     // reserved, broadcast
	"2001::/23",       // IETF protocols, Teredo, ORCHID
	"2001:db8::/32",   // documentation
	"2002::/16",       // 6to4: any IPv4 address in disguise
	"3fff::/20",       // documentation
)

var publicIPv6 = netip.MustParsePrefix("2000::/3")

func prefixes(texts ...string) []netip.Prefix {
	list := make([]netip.Prefix, len(texts))
	for i, text := range texts {
		list[i] = netip.MustParsePrefix(text)
	}
	return list
}

// Public says whether an address is a host of the open internet. IPv4 inside
// IPv6 (::ffff:0:0/96) counts as the IPv4 address; all other disguises of
// IPv4 (NAT64, 6to4, Teredo, v4-compatible) and addresses with a zone do not.
func Public(ip netip.Addr) bool {
	ip = ip.Unmap()
	if !ip.IsValid() || ip.Zone() != "" || (ip.Is6() && !publicIPv6.Contains(ip)) {
		return false
	}
	return !within(special, ip)
}

func within(list []netip.Prefix, ip netip.Addr) bool {
	for _, p := range list {
		if p.Contains(ip) {
			return true
		}
	}
	return false
}
