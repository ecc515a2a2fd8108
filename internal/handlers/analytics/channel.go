package analytics

import "strings"

// The channels by which visits come.
const (
	channelDirect   = "direct"
	channelSearch   = "search"
	channelSocial   = "social"
	channelMail     = "mail"
	channelReferral = "referral" // another site's link
	channelCampaign = "campaign"
)

// channelOf is the channel of a visit, by its first view: that of its campaign, else of
// its source.
func channelOf(r *row) string {
	if r.campaign != "" {
		return campaignChannel(r.campaign)
	}
	if r.referrer == "" {
		return channelDirect
	}
	for _, g := range referrerGroups {
		if g.name == r.referrer {
			return g.channel
		}
	}
	return channelReferral
}

// campaignChannel goes by the medium, which is the second part of a campaign's name.
func campaignChannel(campaign string) string {
	_, rest, _ := strings.Cut(campaign, " / ")
	medium, _, _ := strings.Cut(rest, " / ")
	switch strings.ToLower(medium) {
	case "email", "e-mail", "mail", "newsletter":
		return channelMail
	case "social", "social-media":
		return channelSocial
	}
	return channelCampaign
}
