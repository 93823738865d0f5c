/**
 * Tests bots that run in four processes each and stream texts. The bots use unmodified client libraries, and only set
 * headers of their HTTP clients.
 */
import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { createInterface } from 'node:readline';
import { fileURLToPath } from 'node:url';
import { afterEach, describe, expect, test } from 'vitest';
import { debianLibraries, hasDebianLibrary } from '../../infra/build/client_libraries.mjs';
import { resultOf, type Service, type TestBot, type TestUser } from '../support/service.js';
import { onSharedService } from '../support/shared.js';
import { openEvents, type ServerEvent } from './event_source.js';

interface Program {
  readonly handled: readonly string[];
  readonly errors: readonly string[];
  kill(): Promise<void>;
}

interface Library {
  readonly command: readonly [program: string, ...args: string[]];
  /**
   * True if the library confirms updates before it has handled them. If a process of the bot is killed, it then loses
   * updates.
   */
  readonly confirmsEarly: boolean;
}

const pathOf = (file: string) => fileURLToPath(new URL(`programs/${file}`, import.meta.url));
const python = debianLibraries['python-telegram-bot'].program;
const libraries: Readonly<Record<string, Library>> = {
  grammY: { command: [process.execPath, pathOf('grammy.mjs')], confirmsEarly: false },
  Telegraf: { command: [process.execPath, pathOf('telegraf.mjs')], confirmsEarly: false },
  'python-telegram-bot': {
    // Ignores Python warnings, because Debian's package warns about the version of urllib3.
    command: [python, '-B', '-W', 'ignore', pathOf('python_telegram_bot.py')],
    confirmsEarly: true,
  },
};
const isInstalled = (name: string) =>
  name !== 'python-telegram-bot' || hasDebianLibrary('python-telegram-bot', console.warn);

let service: Service;
onSharedService((running) => {
  service = running;
});

const programs: Program[] = [];
afterEach(async () => {
  for (const program of programs.splice(0)) await program.kill();
});

/** Starts a process of the bot, and waits until it is ready. */
async function start(
  [program, ...args]: Library['command'],
  bot: TestBot,
  front: number,
  headers: Readonly<Record<string, string>>,
  onHandled: (text: string) => void = () => {},
): Promise<Program> {
  const { PATH = '' } = process.env;
  const root = service.fronts[front % service.fronts.length]?.url ?? '';
  const child = spawn(program, args, {
    env: { PATH, BOT_TOKEN: bot.token, API_ROOT: root, HEADERS: JSON.stringify(headers) },
    stdio: ['ignore', 'pipe', 'pipe'],
  });
  const exited = once(child, 'exit');
  const [handled, errors]: [string[], string[]] = [[], []];
  createInterface(child.stderr).on('line', (line) => errors.push(line));
  const started: Program = {
    handled,
    errors,
    async kill() {
      child.kill('SIGKILL');
      await exited;
    },
  };
  programs.push(started);
  await new Promise<void>((resolve, reject) => {
    createInterface(child.stdout).on('line', (line) => {
      const [, text] = /^handled (.*)/.exec(line) ?? [];
      if (text !== undefined) {
        handled.push(text);
        onHandled(text);
      } else if (line === 'ready') resolve();
      else errors.push(line);
    });
    exited.then(() => reject(new Error(`the program has ended: ${errors.join('\n')}`)), reject);
  });
  return started;
}

const say = (person: TestUser, bot: TestBot, text: string) =>
  resultOf(service.app(person, 'POST', `/api/chats/${bot.id}/messages`, { text }));

async function place(people: number) {
  const owner = await service.newUser('owner');
  const bot = await service.newBot(owner, 'stock');
  const users: TestUser[] = [];
  while (users.length < people) users.push(await service.newUser('person'));
  for (const user of users) await service.openChat(user, bot);
  return { bot, users };
}

const count = 4;
const people = 16;

describe.each(Object.keys(libraries))('bots on %s', (name) => {
  const { command, confirmsEarly } = libraries[name] as Library;
  const isHere = isInstalled(name);

  test.skipIf(!isHere)(
    'four processes share the updates, and none is lost or overtaken in its chat when one process is killed',
    async () => {
      const { bot, users } = await place(people);
      /** The texts of each chat, in the order in which they were first handled. */
      const first = new Map(users.map(({ id }) => [id, [] as string[]]));
      const take = (line: string) => {
        const [chat, text = ''] = line.split(' ');
        const own = first.get(Number(chat));
        if (text.startsWith('t') && !own?.includes(text)) own?.push(text);
      };
      const started: Program[] = [];
      for (let i = 0; i < count; i++)
        started.push(await start(command, bot, i, { 'X-Service-Consumer': `worker-${i}` }, take));
      const texts: string[] = [];
      const sayAll = async () => {
        texts.push(`t${texts.length}`);
        for (const user of users) await say(user, bot, texts.at(-1) as string);
      };
      const errors = () => started.flatMap((program) => program.errors);
      const done = () => [...first.values()].filter((own) => own.length === texts.length).length;
      const all = () => expect.poll(() => [errors(), done()], { timeout: 60_000 }).toEqual([[], people]);
      for (let i = 0; i < 5; i++) await sayAll();
      await all();
      const busiest = started.reduce((a, b) => (b.handled.length > a.handled.length ? b : a));
      const before = busiest.handled.length;
      if (confirmsEarly) await busiest.kill();
      const saying = (async () => {
        for (let i = 0; i < 10; i++) await sayAll();
      })();
      if (!confirmsEarly) {
        await expect.poll(() => busiest.handled.length).toBeGreaterThan(before);
        await busiest.kill();
      }
      await saying;
      await all();
      for (const own of first.values()) expect(own).toEqual(texts);
      expect(started.filter(({ handled }) => handled.length > 0).length).toBeGreaterThan(1);
    },
    180_000,
  );

  test.skipIf(!isHere)(
    'a bot streams a text as drafts, and with a header edits a message at any rate',
    async () => {
      const { bot, users } = await place(1);
      const [user] = users as [TestUser];
      const events = await openEvents(service.fronts[1]?.url ?? '', user.token);
      const program = await start(command, bot, 0, { 'X-Service-Coalesce': '1' });
      const text = 'Once upon a time there was a petrel';
      await say(user, bot, `/draft ${text}`);
      const is = (event: string) => (each: ServerEvent) => each.event === event && each.data.text === text;
      const { data: answer } = await events.received(is('message'));
      const drafts = events.events.filter(({ event }) => event === 'message_draft');
      const shown = drafts.map(({ data }) => data.text as string);
      expect(shown.length).toBeGreaterThan(0);
      expect(shown.filter((each) => !text.startsWith(each))).toEqual([]);
      expect(shown).toEqual(shown.toSorted((a, b) => a.length - b.length));
      // Clients hide a draft as soon as a newer message has arrived.
      for (const { data } of drafts) expect(data.after_message_id).toBeLessThan(answer.message_id);
      await say(user, bot, `/edit ${text}`);
      await events.received(is('edited_message'));
      expect(program.errors).toEqual([]);
      events.cut();
    },
    120_000,
  );
});
