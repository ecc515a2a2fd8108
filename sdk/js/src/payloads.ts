// Made by a test from the service's own types: make golden.

/** The payload of each job type that the service has. */
export interface Payloads {
  /** Add up page views. */
  "analytics.process": {
    /** The days. Empty: what changed since the last time. */
    dateRange?: {
      /** The first day. */
      start?: string;
      /** The last day. */
      end?: string;
    } | null;
    /** Count only. */
    dryRun?: boolean;
  };
  /** Mail the figures of a week. */
  "analytics.weekly": {
    /** The week (ISO 8601). Empty: the last complete one. */
    week?: string;
  };
  /** Create a backup. */
  "backup.generate": {
    /** With the files. */
    includeFiles?: boolean | null;
    /** With the database. */
    includeDatabase?: boolean | null;
    /** Destinations, separated by commas. Empty: all. */
    storage?: string;
    /** Only these tables. Empty: all. */
    tables?: Array<string>;
    /** With the files in the archive, though they usually go into the repository. */
    full?: boolean;
    /** A name for people. */
    name?: string;
  };
  /** Check the backups at their destinations and notify the administrators. */
  "backup.monitor": {
    /** Summarise the last seven days as well. */
    digest?: boolean;
  };
  /** Verify a backup. */
  "backup.verify": {
    /** The backup. Empty: the latest. */
    id?: string;
    /** The destination. Empty: every one that has it. */
    storage?: string;
    /** How thoroughly. Empty: as configured. */
    level?: "bytes" | "parsed" | "restored";
  };
  /** Clear the CMS's cache. */
  "cache.clear": {
    /** Parts: pages, posts, categories, tags, galleries, sitemap, menus, languages, widgets, settings, views, config, routes, events. */
    tags?: Array<string>;
    /** Clear everything, the compiled configuration included. */
    clearAll?: boolean;
    /** Count only. */
    dryRun?: boolean;
  };
  /** Remove expired cache entries. */
  "cache.clearExpired": {
    /** Count only. */
    dryRun?: boolean;
  };
  /** Remove pages from the caches in front of the site, and ask for them again. */
  "cache.purge": {
    /** Addresses of the site, or paths such as /news/title. */
    urls?: Array<string>;
    /** What changed on the site since the last such job. */
    changed?: boolean;
    /** Rows of the CMS's content whose pages are purged where they changed, each TABLE:ID. */
    rows?: Array<string>;
    /** The whole site. The addresses are then only asked for. */
    all?: boolean;
    /** Do not ask for the pages. */
    cold?: boolean;
    /** Only say what would be purged. */
    dryRun?: boolean;
  };
  /** Test workers and alarms. */
  "cmsjobs.probe": {
    /** How long it runs, at most 4 minutes. */
    sleep?: string;
    /** The error that it fails with. */
    fail?: string;
  };
  /** Run a program that the configuration allows. */
  "command.run": {
    /** The entry of external.commands. */
    name: string;
  };
  /** Publish one piece of content. */
  "content.publish": {
    /** posts, pages, or another model that is configured. */
    model?: string;
    /** The id of the row. */
    id: string | number;
    /** The moment that the job is for. If the row has another date, the row wins. */
    at?: string | null;
    /** The content is public by its status: renew only what shows it. */
    refresh?: boolean;
    /** Say only what would happen. */
    dryRun?: boolean;
  };
  /** Send a request that the configuration allows. */
  "http.call": {
    /** The entry of external.calls. */
    name: string;
  };
  /** Follow the site's links and name those that lead nowhere. */
  "links.check": {
    /** Addresses of the site where it begins. Empty: the front page and all public content. */
    from?: Array<string>;
    /** How many addresses are asked for. */
    most?: number;
  };
  /** Remove old log files and audit rows, rotate large ones. */
  "logs.cleanup": {
    /** How old they may be. 0: as configured. */
    days?: number;
    /** Count only. */
    dryRun?: boolean;
  };
  /** Read bounce reports from the mailbox. */
  "mail.bounces": Record<string, never>;
  /** Send a mail. It needs a recipient, unless its template names one, and body, text or template. */
  "mail.send": {
    /** Recipients: one address, several with commas, or a list. "administrators" is the CMS's admin_email. */
    to?: Array<string> | string;
    /** Recipients of a copy. */
    cc?: Array<string> | string;
    /** Recipients of a copy whom the others do not see. */
    bcc?: Array<string> | string;
    /** Where answers go. */
    replyTo?: Array<string> | string;
    /** The sender. Empty: the CMS's. */
    from?: string | Record<string, unknown>;
    /** The subject. Empty: the template's. */
    subject?: string;
    /** The text, HTML or plain. */
    body?: string;
    /** How body is written. Empty: found out. */
    format?: "html" | "text";
    /** The plain text beside an HTML body. Empty: made of the body. */
    text?: string;
    /** A template instead of a body: one of the service, or cms:plugins/contact/notice of the CMS. */
    template?: string;
    /** Values for the template, or for {{ variables }} in the body. */
    data?: Record<string, unknown> | never[];
    /** The language of the template. */
    locale?: string;
    /** Paths below the allowed folders (mail.roots), or objects. */
    attachments?: Array<{
      /** A file below the allowed folders. */
      path?: string;
      /** A file of the configured store. */
      key?: string;
      /** The content itself, in base64. */
      content?: string;
      /** The name that the recipient sees. */
      name?: string;
      /** The MIME type. Empty: by the name. */
      contentType?: string;
      /** Makes it a part that HTML shows as cid:contentId. */
      contentId?: string;
    } | string>;
    /** Send each recipient a separate mail. */
    separate?: boolean;
    /** An https or mailto address, or both, for List-Unsubscribe. */
    unsubscribe?: string;
    /** Drop the mail if it is older at its turn. 0: the template's. */
    maxAge?: number;
  };
  /** Enqueue all cleanings. */
  "maintenance.cleanup": {
    /** Count only. */
    dryRun?: boolean;
  };
  /** Create the thumbnails of one picture. It needs mediaFileId or filePath. */
  "media.processImage": {
    /** The id of the row in media_files. */
    mediaFileId?: string | number;
    /** The row's path, with or without /storage/ before it. It is used where there is no id. */
    filePath?: string;
    /** The MIME type that the sender knows. The picture is recognised by its bytes. */
    mimeType?: string;
    /** Create all copies again. */
    force?: boolean;
  };
  /** Notify the administrators. */
  "notification.send": {
    /** Groups messages: one an hour and topic is sent. Empty: the title. */
    topic?: string;
    /** The title. */
    title: string;
    /** The text. */
    message?: string;
    /** How serious it is. */
    level?: "info" | "warning" | "error";
    /** Where to look at it. */
    url?: string;
    /** The only channel to use. Empty: all that take the level. */
    channel?: string;
    /** It was let through already. Over HTTP only administrators may set it. */
    passed?: boolean;
    /** How many messages of the topic it stands for. */
    count?: number;
    /** Send what was held back of the topic. */
    digest?: boolean;
    /** Never hold it back. Over HTTP only administrators may set it. */
    immediate?: boolean;
    /** The chats have it already. Over HTTP only administrators may set it. */
    sent_directly?: boolean;
  };
  /** Remove old runs, old failed jobs and dead workers. */
  "queue.clean": {
    /** Count only. */
    dryRun?: boolean;
  };
  /** Write the sitemap. */
  "sitemap.generate": {
    /** Write it even if nothing changed since the last one. */
    force?: boolean;
  };
  /** Tell search engines which addresses changed. */
  "sitemap.indexnow": {
    /** The sitemap to submit; null is the site's own. One that is given makes the mode both. */
    sitemapUrl?: string | null;
    /** What is submitted: changed addresses, the sitemap, or both. Empty: as configured. */
    mode?: "urls" | "sitemap" | "both";
  };
}
