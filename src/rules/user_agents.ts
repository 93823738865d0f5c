/** Finds the browser's name in a `User-Agent` header, so that people recognise their sessions. */

/**
 * The first match is used. Most browsers also name the older browsers that they imitate, so the older browsers come
 * last in this list.
 */
const browsers: ReadonlyArray<readonly [RegExp, string]> = [
  [/\bEdgA?\/|\bEdgiOS\//, 'Edge'],
  [/\bOPR\/|\bOPT\//, 'Opera'],
  [/\bYaBrowser\//, 'Yandex Browser'],
  [/\bSamsungBrowser\//, 'Samsung Internet'],
  [/\bFirefox\/|\bFxiOS\//, 'Firefox'],
  [/Chrome\/|\bCriOS\//, 'Chrome'],
  [/\bSafari\//, 'Safari'],
];

const systems: ReadonlyArray<readonly [RegExp, string]> = [
  [/\bAndroid\b/, 'Android'],
  [/\biPhone\b|\biPod\b/, 'iPhone'],
  [/\biPad\b/, 'iPad'],
  [/\bWindows\b/, 'Windows'],
  [/\bMac OS X\b|\bMacintosh\b/, 'macOS'],
  [/\bCrOS\b/, 'ChromeOS'],
  [/\bLinux\b/, 'Linux'],
];

const nameIn = (text: string, names: ReadonlyArray<readonly [RegExp, string]>): string =>
  names.find(([form]) => form.test(text))?.[1] ?? '';

/** How many characters of a User-Agent header are searched. The headers of real browsers are shorter. */
const read_length_max = 512;

/** Returns a name such as `Firefox on Linux`, or '' for an unknown browser. The header itself is not stored. */
export function agentFamily(header: string): string {
  const text = header.slice(0, read_length_max);
  return [nameIn(text, browsers), nameIn(text, systems)].filter(Boolean).join(' on ');
}
