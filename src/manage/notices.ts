/** Builds the texts of notices to people. */
import type { Notice, NoticeMessage } from '../store/accounts/notices.js';
import { button, rowsOf } from './buttons.js';
import { commandLines } from './commands.js';
import { type ManageTexts, textsFor } from './texts.js';
import { contentOf, type Said } from './words.js';

/** Formats a time in UTC, because the person's time zone is unknown. */
const timeText = (seconds: number) =>
  `${new Date(seconds * 1_000).toISOString().slice(0, 16).replace('T', ' ')} UTC`;

function saidOf(t: ManageTexts, notice: Notice): Said {
  if (notice.kind === 'welcome') return { key: 'start', values: { commands: commandLines(t) } };
  const values = Object.fromEntries(Object.entries(notice).map(([name, value]) => [name, String(value)]));
  const where = values.where || t.somewhere;
  const named = (username = '') => (username === '' ? t.somebody : `@${username}`);
  const [from, to] = [named(values.from), named(values.to)];
  const since = 'since' in notice ? timeText(notice.since) : '';
  return { key: `notice_${notice.kind}`, values: { ...values, where, from, to, since } };
}

export function noticeMessage(notice: Notice, language: string | null): NoticeMessage {
  const t = textsFor(language);
  const content = contentOf(t, saidOf(t, notice));
  if (notice.kind !== 'transfer_offered') return { content, markup: null };
  const { bot } = notice;
  const answers = [
    button(t.button_accept, { ask: 'accept', bot }),
    button(t.button_decline, { ask: 'decline', bot }),
  ];
  return { content, markup: rowsOf(answers) };
}
