/**
 * The floors: the least that any program on these parts must do for a call, served by the same HTTP engine. One process
 * serves one of them; it is told which by its parent and ends with it.
 */
import { fileURLToPath } from 'node:url';
import { Command } from 'ioredis';
import { type EngineResponse, loadEngine, type TemplatedApp } from '../src/http/engine.js';
import { connectRedis } from '../src/redis/connection.js';
import { readScript } from '../src/redis/contract.js';
import { messageKinds, pack } from '../src/store/codec.js';
import { chatText, directChat, makeKeys } from '../src/store/keys.js';
import type { Pair } from './client.js';

export type FloorSetup =
  | { readonly kind: 'get_me'; readonly body: string }
  | {
      readonly kind: 'send_message';
      readonly redisUrl: string;
      readonly partitions: number;
      readonly pair: Pair;
      /** `from` and `chat` of every message, as the service shows them. */
      readonly from: unknown;
      readonly chat: unknown;
    };

/** P1: the same bytes, without looking at the request. */
function serveGetMe(app: TemplatedApp, body: string): void {
  app.get('/*', (response) => {
    response.writeHeader('Content-Type', 'application/json').end(body);
  });
}

/** Calls `then` with the whole body; `gone` tells that the client went before the answer. */
function readBody(response: EngineResponse, then: (body: Buffer, gone: () => boolean) => void): void {
  let aborted = false;
  let parts: Buffer[] = [];
  response.onAborted(() => {
    aborted = true;
  });
  response.onData((chunk, isLast) => {
    if (isLast && parts.length === 0) return then(Buffer.from(chunk), () => aborted);
    parts.push(Buffer.from(Buffer.from(chunk)));
    if (!isLast) return;
    then(Buffer.concat(parts), () => aborted);
    parts = [];
  });
}

/** P2: JSON.parse, one packed record, the script by its hash through the client of the service, JSON.stringify. */
async function serveSendMessage(
  app: TemplatedApp,
  setup: Extract<FloorSetup, { kind: 'send_message' }>,
): Promise<void> {
  const { bot, user } = setup.pair;
  const connection = connectRedis({ url: setup.redisUrl, name: 'floor' });
  await connection.ready(10_000);
  const root = fileURLToPath(new URL('../../lua', import.meta.url));
  const script = readScript(root, 'messages/send_direct.lua');
  await connection.client.script('LOAD', script.source);

  const keys = makeKeys(setup.partitions);
  const partition = keys.partitions.of(bot.id);
  const ref = directChat(bot.id, user.id);
  const chat = chatText(ref);
  const before = [
    keys.meta(partition),
    keys.journal(partition),
    keys.chat(ref),
    keys.ticket(keys.chat(ref)),
  ] as const;
  const after = [
    keys.changes(ref),
    keys.chatChannel(ref),
    keys.queueState(bot.id),
    keys.queue(bot.id),
    keys.botChannel(bot.id),
    keys.messages(ref),
  ] as const;
  // editedAt, sender, kind and flags; behind the lengths come the content, no keyboard, and the origin.
  const header = Buffer.concat([pack(0), pack(bot.id), pack(messageKinds.text), pack(0)]);
  const noKeyboard = pack(0);
  const origin = pack({});
  const requests = `floor${process.pid}.${Date.now()}.`;
  let count = 0;

  async function send(body: Buffer): Promise<string> {
    const { text } = JSON.parse(body.toString()) as { text: string };
    const content = pack({ text });
    const tail = Buffer.concat([header, pack(content.length), noKeyboard, content, origin]);
    const request = keys.request(partition, `${requests}${count++}`);
    const args = [
      script.sha,
      11,
      ...before,
      request,
      ...after,
      connection.runId() ?? '',
      chat,
      tail,
      '',
      '',
      '',
    ];
    const command = new Command('evalsha', args as string[], { replyEncoding: null });
    const reply = (await connection.client.sendCommand(command)) as [Buffer, Buffer, Buffer];
    const [status, id, date] = reply.map(String);
    if (status !== 'ok') throw new Error(`the script answered ${status}`);
    const message = { message_id: Number(id), from: setup.from, chat: setup.chat, date: Number(date), text };
    return JSON.stringify({ ok: true, result: message });
  }

  app.post('/*', (response) => {
    readBody(response, (body, gone) => {
      const answer = (status: string, text: string) => {
        if (gone()) return;
        response.cork(() => {
          if (status !== '200 OK') response.writeStatus(status);
          response.writeHeader('Content-Type', 'application/json').end(text);
        });
      };
      send(body).then(
        (text) => answer('200 OK', text),
        (error: Error) => answer('500 Internal Server Error', JSON.stringify({ error: error.message })),
      );
    });
  });
}

process.once('message', async (setup: FloorSetup) => {
  const engine = loadEngine();
  const app = engine.app();
  if (setup.kind === 'get_me') serveGetMe(app, setup.body);
  else await serveSendMessage(app, setup);
  app.listen('127.0.0.1', 0, engine.exclusivePort, (socket) => {
    process.send?.({ port: socket ? engine.localPort(socket) : 0 });
  });
});
process.once('disconnect', () => process.exit(0));
