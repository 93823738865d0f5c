/**
 * Attacks a front in every way that one account can. Runs in a separate process, so that its load does not delay the
 * measurements of the test. Runs for `ms` with a number of in-flight calls of each kind, and reports the statuses that
 * it received, by kind of call.
 */
import { randomBytes } from 'node:crypto';
import { connect } from 'node:net';
import { Agent, request } from 'undici';

const inFlight = 3;
const mebibyte = 1024 * 1024;
const repeated = (unit, bytes) => unit.repeat(Math.floor(bytes / unit.length));
const form = { 'content-type': 'application/x-www-form-urlencoded' };
const json = { 'content-type': 'application/json' };

const pairs = repeated('%&', mebibyte);
const links = repeated('[a]', 200_000);
const blanks = ' '.repeat(3_500);

function holdUpload(port) {
  return new Promise((resolve) => {
    const socket = connect(port, '127.0.0.1');
    const end = (status) => {
      socket.destroy();
      resolve(status);
    };
    socket.setTimeout(1_000, () => end('timeout'));
    socket.on('error', () => end('closed'));
    socket.once('data', (answer) => end(Number(answer.toString('latin1', 9, 12))));
    socket.write(
      `POST /bot1:none/sendDocument HTTP/1.1\r\nHost: a\r\nContent-Type: multipart/form-data; boundary=b\r\nContent-Length: ${40 * mebibyte}\r\n\r\n`,
    );
    socket.write(Buffer.alloc(2 * mebibyte));
  });
}

process.once('message', async ({ url, ms, token, botToken, chat, file }) => {
  const dispatcher = new Agent({ connections: 64 });
  const ends = performance.now() + ms;
  const statuses = {};
  const call = async (path, options = {}) => {
    const { statusCode, body } = await request(url + path, { dispatcher, ...options });
    await body.dump({ limit: 64 * mebibyte });
    return statusCode;
  };
  const person = { authorization: `Bearer ${token}` };
  const post = (method, body, headers = json) =>
    call(`/bot${botToken}/${method}`, { method: 'POST', headers, body });
  let count = 0;
  const sent = (text) => JSON.stringify({ chat_id: chat, text });
  const attacks = {
    form: () => post('sendMessage', pairs, form),
    markup: () =>
      post('sendMessage', JSON.stringify({ chat_id: chat, text: links, parse_mode: 'MarkdownV2' })),
    range: () => call(`/file/bot${botToken}/${file}`, { headers: { range: `bytes=${blanks}x` } }),
    encoding: () => call('/app/', { headers: { 'accept-encoding': `a${blanks}x` } }),
    chats: () => call('/api/chats?limit=100', { headers: person }),
    groups: () =>
      call('/api/chats', {
        method: 'POST',
        headers: { ...person, ...json },
        body: JSON.stringify({ type: 'group', title: 'x'.repeat(128) }),
      }),
    messages: () => post('sendMessage', sent('x'.repeat(4_000))),
    kept: () => post('sendMessage', sent('y'.repeat(4_000)), { ...json, 'idempotency-key': `k${++count}` }),
    commands: () =>
      post(
        'setMyCommands',
        JSON.stringify({
          scope: { type: 'chat', chat_id: ++count },
          commands: Array.from({ length: 100 }, (_, i) => ({
            command: `c${i}`,
            description: 'd'.repeat(256),
          })),
        }),
      ),
    copies: () =>
      post(
        'copyMessages',
        JSON.stringify({
          chat_id: chat,
          from_chat_id: chat,
          message_ids: [...Array(100).keys()].map((n) => n + 1),
        }),
      ),
    updates: () => post('getUpdates', JSON.stringify({ offset: -1 })),
    guesses: () => call(`/bot${++count}:${randomBytes(26).toString('base64url')}/getMe`),
    uploads: () => holdUpload(Number(new URL(url).port)),
  };
  const keepOn = async (name, attack) => {
    while (performance.now() < ends) {
      const status = await attack().catch(() => 'failed');
      statuses[name] ??= {};
      statuses[name][status] = (statuses[name][status] ?? 0) + 1;
    }
  };
  await Promise.all(
    Object.entries(attacks).flatMap(([name, attack]) =>
      Array.from({ length: inFlight }, () => keepOn(name, attack)),
    ),
  );
  process.send(statuses, () => process.exit(0));
});
