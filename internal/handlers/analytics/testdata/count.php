<?php
// Counts an access log by itself: php count.php LOG ZONE OWNHOST. It shares
// nothing with the program that it is held against but the definitions in
// docs/analytics.md. Output: JSON, "day|site|dimension|name" =>
// [views, visitors, visits, bounces, milliseconds, timed views].

[, $log, $zoneName, $ownHost] = $argv;
$zone = new DateTimeZone($zoneName);
const AGENTS = [ // of the test's log
    'Firefox/128.0' => ['desktop', 'Firefox', 'Linux'],
    'Version/17.4 Mobile' => ['mobile', 'Safari', 'iOS'],
    'Windows NT 10.0' => ['desktop', 'Chrome', 'Windows'],
];
const SOURCES = ['www.google.co.uk' => 'Google', 'mail.google.com' => 'Mail', 'com.google.android.gm' => 'Mail', 't.co' => 'X', 'l.facebook.com' => 'Facebook'];

function cleanHost(string $host): string
{
    return preg_replace('/^www\./', '', preg_replace('/:\d+$/', '', strtolower($host)));
}

$views = [];
$apart = [];
foreach (file($log, FILE_IGNORE_NEW_LINES) as $line) {
    if ($line !== '' && $line[0] === '{') {
        $c = json_decode($line, true);
        if (!isset($c['request']['uri'])) {
            continue;
        }
        $r = $c['request'];
        [$ms, $host, $address, $method, $uri, $status] = [(int) floor($c['ts'] * 1000), $r['host'], $r['client_ip'], $r['method'], $r['uri'], $c['status']];
        [$referrer, $agent] = [$r['headers']['Referer'][0] ?? '', $r['headers']['User-Agent'][0] ?? ''];
    } else {
        if (!preg_match('~^(.*?) \[(\d\d/\w+/\d{4}:\d\d:\d\d:\d\d [+-]\d{4})\] "((?:[^"\\\\]|\\\\.)*)" (\d+) \S+ "([^"]*)" "([^"]*)"~', $line, $m)) {
            continue;
        }
        $words = explode(' ', $m[1]);
        $host = filter_var($words[0], FILTER_VALIDATE_IP) ? $ownHost : array_shift($words);
        $address = $words[0];
        if (!filter_var($address, FILTER_VALIDATE_IP)) {
            continue;
        }
        $ms = DateTime::createFromFormat('d/M/Y:H:i:s O', $m[2])->getTimestamp() * 1000;
        [$method, $uri] = explode(' ', $m[3]) + ['', ''];
        [$status, $referrer, $agent] = [(int) $m[4], $m[5] === '-' ? '' : $m[5], $m[6]];
    }
    if ($method !== 'GET' || !($status >= 200 && $status < 300 || $status === 304)) {
        continue;
    }
    [$path, $query] = explode('?', $uri, 2) + ['', ''];
    if (preg_match('/\.(css|js|png|jpe?g|ico|xml|txt)$/i', $path)) {
        continue;
    }
    $path = '/' . trim(rawurldecode($path), '/');
    $site = cleanHost($host);
    $day = (new DateTime('@' . intdiv($ms, 1000)))->setTimezone($zone)->format('Y-m-d');
    if (preg_match('/bot|curl/i', $agent)) {
        $apart["$day|$site|bot|bot"] = ($apart["$day|$site|bot|bot"] ?? 0) + 1;
        continue;
    }
    $from = (string) parse_url($referrer, PHP_URL_HOST);
    $from = cleanHost($from) === $site ? '' : (SOURCES[$from] ?? cleanHost($from));
    parse_str($query, $q);
    $campaign = rtrim(implode(' / ', [$q['utm_source'] ?? '', $q['utm_medium'] ?? '', $q['utm_campaign'] ?? '']), '/ ');
    $kind = ['', '', ''];
    foreach (AGENTS as $part => $known) {
        if (str_contains($agent, $part)) {
            $kind = $known;
        }
    }
    $views["$day|$site|$address|$agent"][] = compact('ms', 'day', 'site', 'path', 'from', 'campaign', 'kind');
}

const CHANNELS = ['Google' => 'search', 'Mail' => 'mail', 'X' => 'social', 'Facebook' => 'social'];

$out = [];
$add = function (string $day, string $site, string $dimension, string $name, int $column, int $n = 1) use (&$out) {
    $key = "$day|$site|$dimension|$name";
    $out[$key] ??= [0, 0, 0, 0, 0, 0];
    $out[$key][$column] += $n;
};
foreach ($views as $visitor) {
    usort($visitor, fn ($a, $b) => $a['ms'] <=> $b['ms']);
    $visits = [];
    foreach ($visitor as $v) {
        $open = end($visits);
        if ($open === false || $v['ms'] - end($open)['ms'] > 1_800_000) {
            $visits[] = [];
        }
        $visits[array_key_last($visits)][] = $v;
    }
    $met = []; // what this visitor was counted in
    foreach ($visits as $visit) {
        $seen = [];
        $count = function (string $dimension, string $name) use (&$met, &$seen, $add, $visit) {
            [$day, $site] = [$visit[0]['day'], $visit[0]['site']];
            $add($day, $site, $dimension, $name, 0);
            if (!isset($met["$dimension|$name"])) {
                $add($day, $site, $dimension, $name, 1);
            }
            if (!isset($seen["$dimension|$name"])) {
                $add($day, $site, $dimension, $name, 2);
            }
            $met["$dimension|$name"] = $seen["$dimension|$name"] = true;
        };
        [$day, $site, $first, $last] = [$visit[0]['day'], $visit[0]['site'], $visit[0], end($visit)];
        $medium = strtolower(explode(' / ', $first['campaign'])[1] ?? '');
        $channel = match (true) {
            $first['campaign'] !== '' => ['mail' => 'mail', 'social' => 'social'][$medium] ?? 'campaign',
            $first['from'] === '' => 'direct',
            default => CHANNELS[$first['from']] ?? 'referral',
        };
        foreach ($visit as $i => $v) {
            $count('total', '');
            $count('channel', $channel);
            $count('page', $v['path']);
            if ($i > 0) {
                $add($day, $site, 'page', $visit[$i - 1]['path'], 4, $v['ms'] - $visit[$i - 1]['ms']);
                $add($day, $site, 'page', $visit[$i - 1]['path'], 5);
            }
            if ($v['from'] !== '' || $i === 0) {
                $count('referrer', $v['from']);
            }
            if ($v['campaign'] !== '') {
                $count('campaign', $v['campaign']);
            }
            foreach (['device', 'browser', 'system'] as $n => $dimension) {
                $count($dimension, $v['kind'][$n]);
            }
            $count('country', '');
        }
        $count('entry', $first['path']);
        $count('exit', $last['path']);
        $keys = [['total', ''], ['entry', $first['path']], ['referrer', $first['from']], ['device', $first['kind'][0]],
            ['browser', $first['kind'][1]], ['system', $first['kind'][2]], ['country', ''],
            ['channel', $channel]];
        if ($first['campaign'] !== '') {
            $keys[] = ['campaign', $first['campaign']];
        }
        foreach ($keys as [$dimension, $name]) {
            $add($day, $site, $dimension, $name, 4, $last['ms'] - $first['ms']);
            if (count($visit) === 1) {
                $add($day, $site, $dimension, $name, 3);
            }
        }
    }
}
foreach ($apart as $key => $n) {
    $out[$key] = [$n, 0, 0, 0, 0, 0];
}
echo json_encode($out, JSON_UNESCAPED_UNICODE | JSON_UNESCAPED_SLASHES);
