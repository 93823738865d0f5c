/** Reports that `dev` is ready: writes `dev.json` for programs and prints a banner for people. */
import { ratesText } from '../config/config.js';
import type { Demo } from './demo.js';

export interface Pids {
  readonly front: readonly number[];
  readonly deliver: readonly number[];
  readonly flush: readonly number[];
  /** The pid of the Redis server. Null while Redis restarts, and if `dev` uses a Redis that it did not start. */
  readonly redis: number | null;
  readonly postgres: number | null;
}

/** The content of `dev.json`. The file exists only while the whole installation is running. */
export interface DevInfo extends Demo {
  readonly base_url: string;
  readonly admin_token: string;
  /**
   * A one-time link to `/app`, with which a person can sign in as a demo user. It works only in a browser on this
   * machine.
   */
  readonly demo_link: string;
  readonly redis_url: string;
  readonly database_url: string;
  readonly pids: Pids;
}

export function banner(info: DevInfo, home: string, rates: Readonly<Record<string, string>> = {}): string {
  const { base_url, bot } = info;
  const [alice, bob] = info.users;
  const row = (who: string, token: string) => `  ${who.padEnd(34)}${token}`;
  return [
    '',
    `Petrel is ready at ${base_url}, its API reference at ${base_url}/docs`,
    `The application for people: ${base_url}/app`,
    `Sign in as ${alice.username} or ${bob.username}, from this machine; the link works once: ${info.demo_link}`,
    '',
    row(`bot @${bot.username}`, bot.token),
    row(`user ${alice.username}, who owns the bot`, alice.token),
    row(`user ${bob.username}`, bob.token),
    '',
    'Try it:',
    `  curl -s ${base_url}/bot${bot.token}/getMe`,
    '',
    'With grammY:',
    "  import { Bot } from 'grammy';",
    `  const bot = new Bot('${bot.token}', { client: { apiRoot: '${base_url}' } });`,
    "  bot.on('message:text', (ctx) => ctx.reply(ctx.message.text));",
    '  bot.start();',
    '',
    `Rate limits: ${ratesText(rates)}. Roles started without npm start have limits by default.`,
    `The same as JSON: ${home}/dev.json. Logs: ${home}/logs. Ctrl-C stops everything and keeps the data.`,
    '',
  ].join('\n');
}
