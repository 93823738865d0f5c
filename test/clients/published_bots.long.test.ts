/** Runs published bots of other authors with Petrel as their server, and talks to these bots. */
import { once } from 'node:events';
import { mkdirSync, rmSync, writeFileSync } from 'node:fs';
import { createServer } from 'node:http';
import { type AddressInfo, createServer as createTcpServer } from 'node:net';
import { join } from 'node:path';
import { pathToFileURL } from 'node:url';
import sharp from 'sharp';
import { afterEach, describe, expect, test } from 'vitest';
import { hasDebianLibrary } from '../../infra/build/client_libraries.mjs';
import { temporaryFolder } from '../support/servers.js';
import { type Answer, resultOf, type Service } from '../support/service.js';
import { onSharedService } from '../support/shared.js';
import { answered, exchange, openScene, press, say } from './feature_steps.js';
import {
  canStartBinaries,
  installNpm,
  type Started,
  startBinary,
  startBun,
  startNode,
  startPython,
  unpackDebian,
} from './published_programs.js';

type Json = Answer['body'];

let service: Service;
onSharedService((running) => {
  service = running;
});

const ending: Array<() => unknown> = [];
const running: Started[] = [];
afterEach(async ({ task }) => {
  for (const program of running.splice(0)) {
    await program.stop();
    const { output } = await program.ended;
    if (task.result?.state === 'fail') console.warn(output);
  }
  for (const end of ending.splice(0)) await end();
});

function use(program: Started): Started {
  running.push(program);
  return program;
}

async function listen(server: { listen(port: number, host: string): unknown; address(): unknown }) {
  server.listen(0, '127.0.0.1');
  await once(server as never, 'listening');
  return (server.address() as AddressInfo).port;
}

const npmFolder = await installNpm([
  ...['telegraf-calendar-telegram@2.0.2', 'telegraf@4.16.3', 'dotenv@16.6.1'],
  ...['tg-torrent-bot@3.1.0', 'aedes@1.2.0'],
]);
const root = (front = 0) => service.fronts[front]?.url ?? '';
const installed = (path: string) => join('node_modules', path);

describe.skipIf(npmFolder === null)('the bot of telegraf-calendar-telegram 2.0.2 on Telegraf', () => {
  const rows = ({ reply_markup }: Json): Json[][] => reply_markup.inline_keyboard;
  const labels = (message: Json) => rows(message).map((row) => row.map(({ text }) => text));

  test('a calendar bot shows months, and answers with the chosen date', { timeout: 180_000 }, async () => {
    const scene = await openScene(service, 'published');
    const { ann, bot, group } = scene;
    const variables = { CALENDAR_BOT_TOKEN: bot.token, CALENDAR_BOT_PORT: '0' };
    const program = installed('telegraf-calendar-telegram/bin/www');
    use(startNode(npmFolder ?? '', [program], bot.token, root(), variables));
    for (const chat of [bot.id, group]) {
      const { message_id } = await exchange(scene, ann, chat, '/calendar', 'Here you are');
      const shown = (matches: (message: Json) => boolean) =>
        answered(scene, ann, chat, message_id - 1, (each) => each.message_id === message_id && matches(each));
      const first = await shown(() => true);
      const [, title, weekdays] = [...labels(first).flat().slice(0, 2), labels(first)[1]];
      expect(weekdays).toEqual(['L', 'M', 'M', 'G', 'V', 'S', 'D']);
      // The range of the calendar ends two months away in each direction, so one press in either direction shows
      // another month.
      await press(scene, chat, message_id, rows(first)[0]?.[2]?.callback_data);
      const next = await shown((message) => labels(message)[0]?.[1] !== title);
      await press(scene, chat, message_id, rows(next)[0]?.[0]?.callback_data);
      const back = await shown((message) => labels(message)[0]?.[1] === title);
      expect(labels(back)).toEqual(labels(first));
      const days = rows(back)
        .flat()
        .filter(({ callback_data }) => callback_data.includes('-date-'));
      const date = days[4]?.callback_data.replace('calendar-telegram-date-', '');
      await press(scene, chat, message_id, days[4]?.callback_data);
      await answered(scene, ann, chat, message_id, ({ text }) => text === date);
    }
  });
});

/** Starts a torrent tracker that lists one torrent, on pages in the form that the bot reads. */
async function startTracker(): Promise<string> {
  const row = `<td></td><td title="ok"></td><td><div class="f-name"><a>Films</a></div></td>
    <td><div><a data-topic_id="12">Sintel 2010</a></div></td><td><div><a>ann</a></div></td>
    <td data-ts_text="1500000"></td><td><b>7</b></td><td>2</td><td>30</td><td data-ts_text="1285804800"></td>`;
  const pages: Readonly<Record<string, string>> = {
    '/forum/tracker.php': `<table id="tor-tbl"><tbody><tr>${row}</tr></tbody></table>`,
    '/forum/viewtopic.php': '<a class="magnet-link" href="magnet:?xt=urn:btih:ABC123&amp;dn=Sintel">x</a>',
    '/forum/dl.php': 'd8:announce0:e',
  };
  const server = createServer((request, response) => {
    const path = request.url?.split('?')[0] ?? '';
    if (path === '/forum/login.php') response.writeHead(302, { 'set-cookie': 'session=1', location: '/' });
    response.end(pages[path]);
  });
  ending.push(() => server.close());
  return `http://127.0.0.1:${await listen(server)}`;
}

describe.skipIf(npmFolder === null)('tg-torrent-bot 3.1.0 on node-telegram-bot-api 0.61', () => {
  async function open(more: Readonly<Record<string, string>> = {}) {
    const scene = await openScene(service, 'published');
    const { ann, bot } = scene;
    // Gives the person a language that the bot supports, because the bot fails for other languages.
    for (const person of [ann, scene.ben])
      await resultOf(service.app(person, 'PATCH', '/api/me', { language_code: 'en' }));
    const watched = temporaryFolder();
    const variables = {
      TELEGRAM_TOKEN: bot.token,
      RUTRACKER_HOST: await startTracker(),
      RUTRACKER_USERNAME: 'u',
      RUTRACKER_PASSWORD: 'p',
      ALLOWED_USERS: String(ann.id),
      COMPLETES_WATCHDIR: watched,
      DB_FILE: join(watched, '..', `${bot.id}.json`),
      ...more,
    };
    use(startNode(npmFolder ?? '', [installed('tg-torrent-bot/src/main.js')], bot.token, root(1), variables));
    return { scene, watched };
  }

  test('a torrent bot finds torrents, and sends their files and links', { timeout: 180_000 }, async () => {
    const { scene } = await open();
    const { ann, ben, bot } = scene;
    await say(scene, ben, bot.id, '/help');
    const help = "Send me the name of the movie of interest.\nI'll send you available options.";
    await exchange(scene, ann, bot.id, '/help', help);
    const asked = await say(scene, ann, bot.id, 'sintel');
    const found = await answered(scene, ann, bot.id, asked.message_id, ({ text }) =>
      text?.includes('Sintel'),
    );
    expect(found.text).toContain('Sintel 2010\n12\nDescription\nS 7 | L 2 | Downloaded 30 | Reg 2010-09-30');
    expect(found.text).toContain('Get .torrent file: /d_12\nGet link: /m_12');
    expect(found.entities.map(({ type }: Json) => type)).toEqual([
      ...['text_link', 'bold', 'bot_command', 'bot_command'],
    ]);
    const link = await say(scene, ann, bot.id, '/m_12');
    const magnet = await answered(scene, ann, bot.id, link.message_id, ({ text }) =>
      text?.includes('magnet:'),
    );
    expect(magnet).toMatchObject({
      text: 'magnet:?xt=urn:btih:ABC123&dn=Sintel',
      entities: [{ type: 'pre' }],
    });
    const file = await say(scene, ann, bot.id, '/d_12');
    const { document } = await answered(scene, ann, bot.id, file.message_id, (message) => message.document);
    expect(document).toMatchObject({ file_name: '12.torrent', file_size: 14 });
  });

  test('a torrent bot tells a person when a download is complete', { timeout: 180_000 }, async () => {
    const { scene, watched } = await open({ TORRENTS_DIR: temporaryFolder() });
    const { ann, bot } = scene;
    const { message_id } = await exchange(scene, ann, bot.id, '/d_12', 'Sent for downloading');
    writeFileSync(join(watched, 'abc123'), 'Sintel');
    await answered(scene, ann, bot.id, message_id, ({ text }) => text === 'Downloaded "Sintel"');
  });
});

const bunFolder = await installNpm(['@lovenyberg/ove@0.9.2', '@oven/bun-linux-x64-baseline@1.4.5']);

describe.skipIf(bunFolder === null)('ove 0.9.2 on grammY and Bun', () => {
  /** Stands in for the language model. It reports progress, and answers as soon as the file `go` exists. */
  const model = `#!/bin/sh
echo '{"type":"assistant","message":{"content":[{"type":"text","text":"Boiling **water**"}]}}'
until [ -e "$HOME/go" ]; do sleep 0.1; done
echo '{"type":"result","result":"**Tea** is \`hot\` & <good>"}'
`;

  test('a coding bot works on a request, and reports by editing its messages', {
    timeout: 180_000,
  }, async () => {
    const scene = await openScene(service, 'published');
    const { ann, bot, group } = scene;
    const cwd = temporaryFolder();
    const users = { [`telegram:${ann.id}`]: { name: 'ann', repos: ['*'] } };
    writeFileSync(join(cwd, 'config.json'), JSON.stringify({ repos: {}, users }));
    writeFileSync(join(cwd, 'claude'), model, { mode: 0o755 });
    const program = installed('@lovenyberg/ove/bin/ove.ts');
    use(startBun(bunFolder ?? '', program, cwd, root(), { TELEGRAM_BOT_TOKEN: bot.token, PATH: cwd }));
    const shown = (after: number, matches: (text: string) => boolean) =>
      answered(scene, ann, bot.id, after, ({ text }) => text !== undefined && matches(text));
    const asked = await say(scene, ann, bot.id, '/help');
    await shown(asked.message_id, (text) => /review PR #N on <repo>.*\n.*fix issue/.test(text));
    await exchange(scene, ann, bot.id, 'status', '0 pending, 0 running, 0 done, 0 failed.');
    await exchange(scene, ann, group, 'status', '0 pending, 0 running, 0 done, 0 failed.');
    const { message_id } = await say(scene, ann, bot.id, 'discuss tea');
    const status = await shown(message_id, (text) => text.includes('Boiling water'));
    expect(status.entities).toContainEqual(expect.objectContaining({ type: 'bold' }));
    writeFileSync(join(cwd, 'go'), '');
    const answer = await shown(message_id, (text) => text === 'Tea is hot & <good>');
    expect(answer.entities).toEqual([
      { type: 'bold', offset: 0, length: 3 },
      { type: 'code', offset: 7, length: 3 },
    ]);
    const now = await resultOf(service.app(ann, 'GET', `/api/chats/${bot.id}/messages?limit=20`));
    expect(now.items.map((each: Json) => each.message_id)).not.toContain(status.message_id);
  });
});

const alertsFolder = (await canStartBinaries()) ? await unpackDebian(['prometheus-alertmanager']) : null;

describe.skipIf(alertsFolder === null)('Alertmanager on telebot.v3', () => {
  test('an alert bot tells people about alerts that begin and end', { timeout: 180_000 }, async () => {
    const folder = alertsFolder ?? '';
    const scene = await openScene(service, 'published');
    const { ann, bot, group } = scene;
    const receiver = (chat: number) => ({ bot_token: bot.token, chat_id: chat, api_url: root() });
    const config = {
      route: { receiver: 'people', group_wait: '0s', group_interval: '1s', group_by: ['alertname'] },
      receivers: [{ name: 'people', telegram_configs: [receiver(ann.id), receiver(group)] }],
    };
    writeFileSync(join(folder, 'alerts.yml'), JSON.stringify(config));
    const program = use(
      startBinary(folder, 'usr/bin/prometheus-alertmanager', [
        ...['--config.file=alerts.yml', '--storage.path=data', '--cluster.listen-address='],
        '--web.listen-address=127.0.0.1:0',
      ]),
    );
    const [, port] = await program.line(/Listening on.*address=127\.0\.0\.1:(\d+)/);
    const notify = async (more: object) => {
      const labels = { alertname: 'Disk <full> & hot', host: 'a_1' };
      const alert = { labels, annotations: { summary: '95 % *used*' }, ...more };
      const options = { method: 'POST', headers: { 'content-type': 'application/json' } };
      const body = JSON.stringify([alert]);
      const answer = await fetch(`http://127.0.0.1:${port}/api/v2/alerts`, { ...options, body });
      expect(answer.status).toBe(200);
    };
    const shows = async (begin: string) => {
      for (const chat of [bot.id, group]) {
        const shown = await answered(scene, ann, chat, 0, ({ text }) => text?.startsWith(begin));
        expect(shown.text).toContain('alertname = Disk <full> & hot');
        expect(shown.text).toContain('summary = 95 % *used*');
      }
    };
    await notify({});
    await shows('Alerts Firing');
    await notify({ endsAt: new Date(Date.now() - 1_000).toISOString() });
    await shows('Alerts Resolved');
  });
});

const cameraFolder =
  npmFolder !== null && hasDebianLibrary('python-telegram-bot', console.warn)
    ? await unpackDebian(['python3-berrynet=3.10.2-2', 'python3-paho-mqtt', 'python3-logzero'])
    : null;

/** Starts an MQTT broker, and returns its port and a function that publishes. */
async function startBroker() {
  const { Aedes } = await import(pathToFileURL(join(npmFolder ?? '', installed('aedes/aedes.js'))).href);
  const broker = await Aedes.createBroker();
  const server = createTcpServer(broker.handle);
  ending.push(
    () => server.close(),
    () => broker.close(),
  );
  const subscribed = new Set<string>();
  broker.on('subscribe', (topics: ReadonlyArray<{ readonly topic: string }>) => {
    for (const { topic } of topics) subscribed.add(topic);
  });
  const publish = (topic: string, payload: object) =>
    broker.publish({ topic, payload: JSON.stringify(payload), qos: 0, cmd: 'publish' }, () => undefined);
  return { port: await listen(server), subscribed, publish };
}

describe.skipIf(cameraFolder === null)('bn_telegram of BerryNet 3.10.2 on python-telegram-bot 13.15', () => {
  const folder = cameraFolder ?? '';
  const topics = { result: 'berrynet/engine/tflitedetector/result', image: 'berrynet/data/rgbimage' };

  test('a camera bot sends pictures to the people who subscribed', { timeout: 180_000 }, async () => {
    const scene = await openScene(service, 'published');
    const { ann, ben, bot } = scene;
    const { port, subscribed, publish } = await startBroker();
    // The program needs OpenCV only to draw into pictures, and this test draws nothing.
    for (const name of ['cv2', 'numpy'])
      writeFileSync(join(folder, 'usr/lib/python3/dist-packages', `${name}.py`), '');
    mkdirSync(join(folder, '.cache'), { recursive: true });
    const args = ['--token', bot.token, '--broker-ip', '127.0.0.1', '--broker-port', String(port)];
    const program = 'usr/lib/python3/dist-packages/berrynet/client/telegram_bot.py';
    use(startPython(folder, program, args, root()));
    // If the program runs as root, it writes its log to this file.
    ending.push(() => rmSync('/tmp/berrynet.log', { force: true }));
    await expect.poll(() => [...subscribed].sort()).toEqual(Object.values(topics).sort());
    await exchange(scene, ben, bot.id, '/hi', 'Hi, ben');
    const help = await say(scene, ann, bot.id, '/help');
    await answered(scene, ann, bot.id, help.message_id, ({ text }) => text?.includes('shot - Take a shot'));
    const bytes = await sharp({ create: { width: 64, height: 48, channels: 3, background: 'red' } })
      .jpeg()
      .toBuffer();
    const picture = { bytes: bytes.toString('base64'), annotations: [{ label: 'cat' }] };
    const { message_id } = await exchange(
      scene,
      ann,
      bot.id,
      '/camera',
      'Dear, I am ready to help send notification',
    );
    publish(topics.result, picture);
    const shown = await answered(scene, ann, bot.id, message_id, ({ photo }) => photo);
    expect(shown.photo[0]).toMatchObject({ width: 64, height: 48, file_size: bytes.length });
    const { message_id: stopped } = await exchange(scene, ann, bot.id, '/stop', 'Bye');
    publish(topics.result, picture);
    await say(scene, ann, bot.id, '/shot');
    // The program does not answer /shot. The answer to the later text /hi shows that the program has read /shot.
    await exchange(scene, ann, bot.id, '/hi', 'Hi, ann');
    publish(topics.image, picture);
    await answered(scene, ann, bot.id, stopped, ({ photo }) => photo);
    const shownNow = await resultOf(service.app(ann, 'GET', `/api/chats/${bot.id}/messages?limit=20`));
    expect(shownNow.items.filter(({ photo }: Json) => photo)).toHaveLength(2);
    const others = await resultOf(service.app(ben, 'GET', `/api/chats/${bot.id}/messages?limit=20`));
    expect(others.items.filter(({ photo }: Json) => photo)).toEqual([]);
  });
});
