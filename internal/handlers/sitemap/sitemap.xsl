<?xml version="1.0" encoding="UTF-8"?>
<!-- made by cmsjobs -->
<xsl:stylesheet version="1.0" xmlns:xsl="http://www.w3.org/1999/XSL/Transform" xmlns:s="http://www.sitemaps.org/schemas/sitemap/0.9" xmlns:image="http://www.google.com/schemas/sitemap-image/1.1" xmlns:xhtml="http://www.w3.org/1999/xhtml" exclude-result-prefixes="s image xhtml">
  <xsl:output method="html" encoding="UTF-8" indent="yes" doctype-system="about:legacy-compat"/>
  <xsl:template match="/">
    <html lang="en">
      <head>
        <title>Sitemap</title>
        <meta name="viewport" content="width=device-width, initial-scale=1"/>
        <meta name="robots" content="noindex"/>
        <style>
          body { font: 15px/1.5 system-ui, sans-serif; color: #1f2430; margin: 2rem auto; max-width: 72rem; padding: 0 1rem; }
          table { border-collapse: collapse; width: 100%; }
          th, td { text-align: left; padding: .45rem .6rem; border-bottom: 1px solid #e3e6ee; vertical-align: top; }
          th { font-weight: 600; white-space: nowrap; }
          td.n { white-space: nowrap; font-variant-numeric: tabular-nums; }
          a { color: #1a56b8; overflow-wrap: anywhere; }
          @media (prefers-color-scheme: dark) { body { background: #14171f; color: #e6e9f2; } th, td { border-color: #2b303d; } a { color: #8ab4ff; } }
        </style>
      </head>
      <body>
        <h1>Sitemap</h1>
        <xsl:apply-templates select="s:sitemapindex | s:urlset"/>
      </body>
    </html>
  </xsl:template>
  <xsl:template match="s:sitemapindex">
    <p><xsl:value-of select="count(s:sitemap)"/> files. Search engines read this list; people may follow it.</p>
    <table>
      <tr><th>File</th><th>Last change</th></tr>
      <xsl:for-each select="s:sitemap">
        <tr>
          <td><a href="{s:loc}"><xsl:value-of select="s:loc"/></a></td>
          <td class="n"><xsl:value-of select="concat(substring(s:lastmod, 1, 10), ' ', substring(s:lastmod, 12, 5))"/></td>
        </tr>
      </xsl:for-each>
    </table>
  </xsl:template>
  <xsl:template match="s:urlset">
    <p><xsl:value-of select="count(s:url)"/> addresses.</p>
    <table>
      <tr><th>Address</th><th>Languages</th><th>Images</th><th>Priority</th><th>Changes</th><th>Last change</th></tr>
      <xsl:for-each select="s:url">
        <tr>
          <td><a href="{s:loc}"><xsl:value-of select="s:loc"/></a></td>
          <td class="n"><xsl:value-of select="count(xhtml:link[@hreflang != 'x-default'])"/></td>
          <td class="n"><xsl:value-of select="count(image:image)"/></td>
          <td class="n"><xsl:value-of select="s:priority"/></td>
          <td class="n"><xsl:value-of select="s:changefreq"/></td>
          <td class="n"><xsl:value-of select="concat(substring(s:lastmod, 1, 10), ' ', substring(s:lastmod, 12, 5))"/></td>
        </tr>
      </xsl:for-each>
    </table>
  </xsl:template>
</xsl:stylesheet>
