/** Tests calls without a client library: node:http, curl and undici, with parameters in every form. */
import { execFile } from 'node:child_process';
import { Agent, request as nodeRequest } from 'node:http';
import { promisify } from 'node:util';
import { FormData, Pool } from 'undici';
import { expect, test } from 'vitest';
import { itemsOf, type Service, type TestBot, type TestUser } from '../support/service.js';
import { onSharedService } from '../support/shared.js';

const run = promisify(execFile);
const text = 'grüße & <b>=100%</b> + 👋\n"x"';
const keyboard = { inline_keyboard: [[{ text: 'ok', callback_data: 'ok' }]] };

let service: Service;
let user: TestUser;
let bot: TestBot;

onSharedService(async (running) => {
  service = running;
  user = await service.newUser('ann');
  bot = await service.newBot(user, 'plain');
  await service.openChat(user, bot);
});

const urlOf = (method: string, front = 0) => `${service.fronts[front]?.url}/bot${bot.token}/${method}`;
const pathOf = (method: string) => `/bot${bot.token}/${method}`;
const fields = () => ({
  chat_id: String(user.id),
  text,
  reply_markup: JSON.stringify(keyboard),
  disable_notification: 'true',
  unknown_parameter: 'is ignored',
});
const sent = () => ({
  from: { id: bot.id, is_bot: true, first_name: 'plain', username: bot.username },
  chat: { id: user.id, type: 'private', first_name: 'ann', username: user.username },
  text,
  reply_markup: keyboard,
  message_id: expect.any(Number),
  date: expect.any(Number),
});

/** Returns the newest message in the chat, as the person sees it on the other front. */
async function newest() {
  const list = await itemsOf(service.app(user, 'GET', `/api/chats/${bot.id}/messages?limit=1`, undefined, 1));
  return list[0];
}

async function expectSent(answer: {
  readonly ok: boolean;
  readonly result: { readonly message_id: number };
}) {
  expect(answer).toEqual({ ok: true, result: sent() });
  expect(await newest()).toMatchObject({
    message_id: answer.result.message_id,
    text,
    reply_markup: keyboard,
  });
}

test('node:http can send parameters in every form over one keep-alive connection', async () => {
  const agent = new Agent({ keepAlive: true, maxSockets: 1 });
  const sockets = new Set<unknown>();
  const call = (path: string, method: string, headers: Record<string, string> = {}, body = '') =>
    new Promise<{ status: number | undefined; type: string | undefined; body: string }>((resolve, reject) => {
      const request = nodeRequest(service.fronts[0].url + path, { agent, method, headers }, (answer) => {
        const chunks: Buffer[] = [];
        answer.on('data', (chunk) => chunks.push(chunk));
        answer.on('end', () =>
          resolve({
            status: answer.statusCode,
            type: answer.headers['content-type'],
            body: Buffer.concat(chunks).toString(),
          }),
        );
      });
      request.on('socket', (socket) => sockets.add(socket));
      request.on('error', reject);
      request.end(body);
    });
  const form = new URLSearchParams(fields()).toString();
  const boundary = '----------------------------0123456789';
  const parts = Object.entries(fields())
    .map(
      ([name, value]) =>
        `--${boundary}\r\ncontent-disposition: form-data; name="${name}"\r\n\r\n${value}\r\n`,
    )
    .join('');
  const answers = [
    await call(`${pathOf('sendMessage')}?${form}`, 'GET'),
    await call(pathOf('SENDMESSAGE'), 'POST', { 'content-type': 'application/x-www-form-urlencoded' }, form),
    await call(
      pathOf('sendMessage'),
      'POST',
      { 'content-type': 'application/json; charset=utf-8' },
      JSON.stringify({ chat_id: user.id, text, reply_markup: keyboard }),
    ),
    await call(
      pathOf('sendmessage'),
      'POST',
      { 'content-type': `multipart/form-data; boundary=${boundary}` },
      `${parts}--${boundary}--`,
    ),
    // Sends some parameters in the query and the other parameters in the body.
    await call(
      `${pathOf('sendMessage')}?chat_id=${user.id}&text=overridden`,
      'POST',
      { 'content-type': 'application/json' },
      JSON.stringify({ text, reply_markup: JSON.stringify(keyboard) }),
    ),
  ];
  for (const { status, type, body } of answers) {
    expect([status, type]).toEqual([200, 'application/json']);
    expect(JSON.parse(body)).toEqual({ ok: true, result: sent() });
  }
  const ids = answers.map(({ body }) => JSON.parse(body).result.message_id);
  expect(ids.map((id) => id - ids[0])).toEqual([0, 1, 2, 3, 4]);
  expect(await newest()).toMatchObject({ message_id: ids.at(-1), text });
  expect(sockets.size).toBe(1);
  agent.destroy();
});

test('curl can send parameters in every form, even JSON that is labelled as a form', async () => {
  const curl = async (...args: string[]) => {
    const { stdout } = await run('curl', [
      '-sS',
      '--max-time',
      '10',
      '-w',
      '\n%{http_code} %{content_type}',
      ...args,
    ]);
    const [body = '', status] = stdout.split(/\n(?=\d{3} )/);
    expect(status).toBe('200 application/json');
    return JSON.parse(body);
  };
  const pairs = Object.entries(fields()).map(([name, value]) => `${name}=${value}`);
  const encoded = pairs.flatMap((pair) => ['--data-urlencode', pair]);
  const json = JSON.stringify({ chat_id: user.id, text, reply_markup: keyboard });
  const url = urlOf('sendMessage', 1);
  await expectSent(await curl('-G', ...encoded, url));
  await expectSent(await curl(...encoded, url));
  await expectSent(await curl('-H', 'Content-Type: application/json', '-d', json, url));
  await expectSent(await curl('-d', json, url));
  await expectSent(
    await curl(
      ...Object.entries(fields()).flatMap(([name, value]) => ['--form-string', `${name}=${value}`]),
      url,
    ),
  );
  expect(await curl(urlOf('getMe'))).toMatchObject({ ok: true, result: { id: bot.id } });
});

test('undici gets the right answer to each of its simultaneous calls', async () => {
  const pool = new Pool(service.fronts[0].url, { connections: 2, pipelining: 1 });
  try {
    const call = async (path: string, options: object) => {
      const { statusCode, body } = await pool.request({ path, method: 'POST', ...options });
      expect(statusCode).toBe(200);
      return (await body.json()) as { ok: boolean; result: { message_id: number; text: string } };
    };
    const form = new FormData();
    // FormData encodes each line break as CRLF.
    const line = text.replace('\n', ' ');
    for (const [name, value] of Object.entries({ ...fields(), text: line })) form.append(name, value);
    const { result } = await call(pathOf('sendMessage'), { body: form });
    expect(result).toEqual({ ...sent(), text: line });
    const texts = Array.from({ length: 100 }, (_, i) => `n ${i}`);
    const headers = { 'content-type': 'application/json' };
    const answers = await Promise.all(
      texts.map((given) =>
        call(pathOf('sendMessage'), { headers, body: JSON.stringify({ chat_id: user.id, text: given }) }),
      ),
    );
    expect(answers.map(({ result }) => result.text)).toEqual(texts);
    expect(new Set(answers.map(({ result }) => result.message_id)).size).toBe(100);
  } finally {
    await pool.close();
  }
});
