/** Runs published programs of other authors with Petrel as their server, and talks to these programs. */
import { readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { afterEach, describe, expect, test } from 'vitest';
import { hasDebianLibrary } from '../../infra/build/client_libraries.mjs';
import { mp4, png, wav } from '../support/samples.js';
import type { Answer, Service } from '../support/service.js';
import { onSharedService } from '../support/shared.js';
import { answered, exchange, openScene, press, type Scene, say } from './feature_steps.js';
import {
  installNpm,
  type Started,
  startNode,
  startPython,
  startReadme,
  unpackDebian,
} from './published_programs.js';

type Json = Answer['body'];

let service: Service;
onSharedService((running) => {
  service = running;
});

const running: Started[] = [];
afterEach(async () => {
  for (const program of running.splice(0)) await program.stop();
});

const npmFolder = await installNpm([
  ...['telegraf@4.16.3', 'telegraf-session-local@2.1.1'],
  ...['grammy@1.46.0', 'grammy-inline-menu@9.3.0', '@grammyjs/conversations@2.1.1'],
]);

/** Starts the program that the README of a package contains. */
async function open(name: string): Promise<Scene> {
  const scene = await openScene(service, 'published');
  const { token } = scene.bot;
  running.push(await startReadme(npmFolder ?? '', name, token, service.fronts[1]?.url ?? ''));
  return scene;
}

describe.skipIf(npmFolder === null)('the program in the README of', () => {
  test('telegraf 4.16.3 answers commands and texts', { timeout: 180_000 }, async () => {
    const scene = await open('telegraf');
    const { ann, bot } = scene;
    for (const [text, reply] of [
      ['/start', 'Welcome'],
      ['/help', 'Send me a sticker'],
      ['hi', 'Hey there'],
    ] as const)
      await exchange(scene, ann, bot.id, text, reply);
  });

  test('telegraf-session-local 2.1.1 keeps counting messages after a restart', {
    timeout: 180_000,
  }, async () => {
    const scene = await open('telegraf-session-local');
    const { ann, bot } = scene;
    const count = async (n: number) => {
      const shown = await exchange(scene, ann, bot.id, 'x', `Counter updated, new value: ${n}`);
      expect(shown.entities).toEqual([{ type: 'code', offset: 28, length: 1 }]);
    };
    await count(1);
    await count(2);
    await running.pop()?.stop();
    running.push(
      await startReadme(npmFolder ?? '', 'telegraf-session-local', bot.token, service.fronts[0].url),
    );
    await count(3);
  });

  test('grammy 1.46.0 echoes texts', { timeout: 180_000 }, async () => {
    const scene = await open('grammy');
    const { ann, bot, group } = scene;
    for (const text of ['hello', 'a <b> & "c" 👋\nline'])
      await exchange(scene, ann, bot.id, text, `Echo: ${text}`);
    await exchange(scene, ann, group, 'in a group', 'Echo: in a group');
  });

  test('grammy-inline-menu 9.3.0 shows a menu and reacts to its button', { timeout: 180_000 }, async () => {
    const scene = await open('grammy-inline-menu');
    const { ann, bot } = scene;
    const menu = await exchange(scene, ann, bot.id, '/start', `Hey ${ann.first_name}!`);
    const [[button]] = menu.reply_markup.inline_keyboard;
    expect(button.text).toBe('I am excited!');
    await press(scene, bot.id, menu.message_id, button.callback_data);
    await answered(scene, ann, bot.id, menu.message_id, ({ text }: Json) => text === 'As am I!');
  });

  test('@grammyjs/conversations 2.1.1 converses with two people', { timeout: 180_000 }, async () => {
    const scene = await open('@grammyjs/conversations');
    const { ann, ben, bot } = scene;
    for (const who of [ann, ben]) {
      await exchange(scene, who, bot.id, '/start', 'Hi! Send /enter');
      await exchange(scene, who, bot.id, '/enter', 'Hi there! What is your name?');
    }
    await exchange(scene, ben, bot.id, 'Benjamin', 'Welcome to the chat, Benjamin!');
    await exchange(scene, ann, bot.id, 'Annabel', 'Welcome to the chat, Annabel!');
    await exchange(scene, ann, bot.id, 'more', 'What a nice update.');
  });
});

describe.skipIf(npmFolder === null)('the command telegraf 4.16.3', () => {
  const call = async (token: string, method: string, data: object) => {
    const cli = 'node_modules/telegraf/lib/cli.mjs';
    const args = ['--method', method, '--data', JSON.stringify(data)];
    return startNode(npmFolder ?? '', [cli, ...args], token, service.fronts[0].url).ended;
  };

  test('the command-line program of Telegraf calls methods and shows refusals', {
    timeout: 180_000,
  }, async () => {
    const scene = await openScene(service, 'published');
    const { ann, bot } = scene;
    const sent = await call(bot.token, 'sendMessage', { chat_id: ann.id, text: 'by command' });
    expect(sent).toMatchObject({ code: 0, output: expect.stringContaining("text: 'by command'") });
    await answered(scene, ann, bot.id, 0, ({ text }: Json) => text === 'by command');
    const refused = await call(bot.token, 'sendMessage', { chat_id: ann.id, text: '' });
    expect(refused.code).not.toBe(0);
    expect(refused.output).toContain('400: Bad Request: message text is empty');
  });
});

const debianFolder = hasDebianLibrary('python-telegram-bot', console.warn)
  ? await unpackDebian(['telegram-send=0.34-2', 'python3-colorama', 'python3-appdirs'])
  : null;

describe.skipIf(debianFolder === null)('telegram-send 0.34 on python-telegram-bot 13.15', () => {
  const folder = debianFolder ?? '';
  const command = (...args: string[]) =>
    startPython(folder, 'usr/bin/telegram-send', ['--config', 'send.conf', ...args], service.fronts[0].url);

  async function send(...args: string[]): Promise<string> {
    const { code, output } = await command(...args).ended;
    expect({ code, output }).toEqual({ code: 0, output });
    return output;
  }

  /** Pairs the program with ann, as a user of the program would do. */
  async function pair(): Promise<{ readonly scene: Scene; readonly after: number }> {
    const scene = await openScene(service, 'published');
    const { ann, bot } = scene;
    const program = command('--configure');
    running.push(program);
    program.write(`${bot.token}\n`);
    const [, password = ''] = await program.line(/send it the password:\D*(?:\d+m)?(\d{5})\b/);
    const { message_id } = await say(scene, ann, bot.id, password);
    await answered(scene, ann, bot.id, message_id, ({ text }: Json) => text.includes('is now ready for use'));
    expect((await running.pop()?.ended)?.code).toBe(0);
    expect(readFileSync(join(folder, 'send.conf'), 'utf8')).toContain(`chat_id = ${ann.id}`);
    return { scene, after: message_id };
  }

  test('telegram-send sends texts, files and locations to a paired person', {
    timeout: 240_000,
  }, async () => {
    const { scene, after } = await pair();
    const { ann, bot } = scene;
    const shows = (matches: (message: Json) => boolean) => answered(scene, ann, bot.id, after, matches);
    await send('plain text');
    await shows(({ text }) => text === 'plain text');
    await send('--format', 'html', '<b>bold</b> &amp; plain');
    const html = await shows(({ text }) => text === 'bold & plain');
    expect(html.entities).toEqual([{ type: 'bold', offset: 0, length: 4 }]);
    await send('--format', 'markdown', '_slanted_');
    const slanted = await shows(({ text }) => text === 'slanted');
    expect(slanted.entities).toEqual([{ type: 'italic', offset: 0, length: 7 }]);
    await send('--pre', '1 < 2');
    expect((await shows(({ text }) => text === '1 < 2')).entities).toMatchObject([{ type: 'pre' }]);
    for (const [name, bytes] of [
      ['p.png', png(64, 64)],
      ['f.txt', 'words'],
      ['v.mp4', mp4(64, 64, 1)],
      ['a.wav', wav(1)],
    ] as const)
      writeFileSync(join(folder, name), bytes);
    await send('--image', 'p.png', '--caption', 'seen');
    await shows(({ caption, photo }) => caption === 'seen' && photo);
    await send('--file', 'f.txt');
    await shows(({ document }) => document?.file_name === 'f.txt');
    await send('--video', 'v.mp4');
    await shows(({ video }) => video?.width === 64);
    await send('--audio', 'a.wav');
    await shows(({ audio }) => audio);
    await send('--animation', 'v.mp4');
    await shows(({ animation }) => animation);
    await send('--location', '56.95,24.1');
    await shows(({ location }) => location?.latitude === 56.95);
  });

  test('telegram-send splits long texts, and deletes messages by id', { timeout: 120_000 }, async () => {
    const { scene, after } = await pair();
    const { ann, bot } = scene;
    const lines = Array.from({ length: 1_500 }, (_, i) => `line ${i}`).join('\n');
    const [, ids = ''] = /message_ids ([\d ]+)/.exec(await send('--showids', lines)) ?? [];
    expect(ids.trim().split(' ').length).toBeGreaterThan(2);
    await answered(scene, ann, bot.id, after, ({ text }: Json) => text?.endsWith('line 1499'));
    const output = await send('--delete', ...ids.trim().split(' '));
    expect(output).not.toContain('failed');
    await expect
      .poll(async () => {
        const { body } = await service.app(ann, 'GET', `/api/chats/${bot.id}/messages?limit=20`);
        return body.result.items.some(({ text }: Json) => text?.includes('line 1499'));
      })
      .toBe(false);
  });
});
