/** Formats numbers and times for operators, as texts of about the same width. */
const whole = new Intl.NumberFormat('en', { maximumFractionDigits: 0 });

export const count = (n: number): string => whole.format(n);

/** Formats a rate per second. */
export function rate(n: number | undefined): string {
  if (n === undefined) return '–';
  if (n === 0) return '0';
  if (n < 0.05) return '<0.1';
  return n < 100 ? n.toFixed(1) : whole.format(n);
}

export function ms(n: number | null | undefined): string {
  if (n === null || n === undefined) return '–';
  if (n >= 60_000) return span(n);
  if (n >= 1_000) return `${(n / 1_000).toFixed(n < 10_000 ? 1 : 0)} s`;
  return `${n < 1 ? n.toFixed(2) : n < 10 ? n.toFixed(1) : whole.format(n)} ms`;
}

/** Formats a duration with at most two units. */
export function span(milliseconds: number): string {
  const s = Math.max(0, Math.floor(milliseconds / 1_000));
  if (s < 60) return `${s} s`;
  if (s < 3_600) return `${Math.floor(s / 60)} min`;
  if (s < 86_400) return `${Math.floor(s / 3_600)} h ${Math.floor((s % 3_600) / 60)} min`;
  return `${Math.floor(s / 86_400)} d ${Math.floor((s % 86_400) / 3_600)} h`;
}

export function bytes(n: number | undefined): string {
  if (n === undefined) return '–';
  const units = ['B', 'KiB', 'MiB', 'GiB', 'TiB'];
  let unit = 0;
  let left = n;
  while (left >= 1_024 && unit < units.length - 1) {
    left /= 1_024;
    unit++;
  }
  return `${left < 10 && unit > 0 ? left.toFixed(1) : Math.round(left)} ${units[unit]}`;
}

export const percent = (share: number | undefined): string =>
  share === undefined ? '–' : `${Math.round(share * 100)} %`;

export const time = (seconds: number): string =>
  new Date(seconds * 1_000).toLocaleString('en-GB', { dateStyle: 'medium', timeStyle: 'short' });

/** Formats a time of day without seconds. */
export const minute = (unixMs: number): string =>
  new Date(unixMs).toLocaleTimeString('en-GB', { hour: '2-digit', minute: '2-digit' });

export const clock = (unixMs: number): string => new Date(unixMs).toLocaleTimeString('en-GB');
