import { describe, expect, test } from 'vitest';
import { cookieValue } from '../../src/rules/cookies.js';
import { agentFamily } from '../../src/rules/user_agents.js';

const webKit = 'AppleWebKit/537.36 (KHTML, like Gecko)';

describe('agentFamily', () => {
  test.each([
    ['Mozilla/5.0 (X11; Linux x86_64; rv:140.0) Gecko/20100101 Firefox/140.0', 'Firefox on Linux'],
    [
      `Mozilla/5.0 (Windows NT 10.0; Win64; x64) ${webKit} Chrome/140.0.0.0 Safari/537.36`,
      'Chrome on Windows',
    ],
    [
      `Mozilla/5.0 (Windows NT 10.0; Win64; x64) ${webKit} Chrome/140.0.0.0 Safari/537.36 Edg/140.0.0.0`,
      'Edge on Windows',
    ],
    [
      `Mozilla/5.0 (Linux; Android 10; K) ${webKit} Chrome/140.0.0.0 Mobile Safari/537.36`,
      'Chrome on Android',
    ],
    [
      'Mozilla/5.0 (iPhone; CPU iPhone OS 18_6 like Mac OS X) AppleWebKit/605.1.15 Version/18.6 Mobile/15E148 Safari/604.1',
      'Safari on iPhone',
    ],
    [
      'Mozilla/5.0 (Macintosh; Intel Mac OS X 10_15_7) AppleWebKit/605.1.15 Version/18.6 Safari/605.1.15',
      'Safari on macOS',
    ],
    [
      `Mozilla/5.0 (X11; Linux x86_64) ${webKit} Chrome/140.0.0.0 Safari/537.36 OPR/120.0.0.0`,
      'Opera on Linux',
    ],
    ['curl/8.5.0', ''],
    ['', ''],
    [`${'x'.repeat(600)} Firefox/1`, ''],
    ['<script>alert(1)</script>', ''],
  ])('%s is named %j', (header, name) => {
    expect(agentFamily(header)).toBe(name);
  });
});

describe('cookieValue', () => {
  test.each([
    ['a=1; petrel=2; b=3', '2'],
    ['petrel=2', '2'],
    [' petrel = 2 ', '2'],
    ['petrel=first; petrel=second', 'first'],
    ['petrel=a=b', 'a=b'],
    ['other_petrel=2; petrelx=3', ''],
    ['petrel', ''],
    ['=2', ''],
    ['', ''],
  ])('the cookie in %j has the value %j', (header, value) => {
    expect(cookieValue(header, 'petrel')).toBe(value);
  });
});
