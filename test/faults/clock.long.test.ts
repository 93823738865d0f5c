/** Tests roles with clocks that are an hour wrong. Signatures, retries and expiry must follow the time of Redis. */
import { fileURLToPath } from 'node:url';
import { Webhook } from 'standardwebhooks';
import { afterEach, expect, test } from 'vitest';
import { makeCertificate } from '../support/certificates.js';
import { type Receiver, startReceiver } from '../support/receivers.js';
import { resultOf, type Service, startService } from '../support/service.js';
import { atMost, patienceMs, report } from './report.js';

const preload = fileURLToPath(new URL('../support/shifted_clock.mjs', import.meta.url));
const certificate = makeCertificate({ names: ['localhost'], addresses: ['127.0.0.1'] });
const hour_ms = 3_600_000;

let service: Service | undefined;
let receiver: Receiver | undefined;
afterEach(async () => {
  await service?.stop();
  await receiver?.close();
  [service, receiver] = [undefined, undefined];
});

/** The requests that reached the receiver: text, time, and whether the signature was valid. */
interface Shown {
  readonly text: string;
  readonly atMs: number;
  readonly verified: boolean;
}

test.each([
  ['ahead', hour_ms],
  ['behind', -hour_ms],
])(
  'R23: signatures and retries are right on machines whose clock is an hour %s',
  async (_, shiftMs) => {
    service = await startService({
      extraEnv: {
        PARTITIONS: '16',
        WEBHOOK_ALLOW_CIDRS: '127.0.0.0/8',
        NODE_OPTIONS: `--import=${preload}`,
        SHIFTED_CLOCK_MS: `${shiftMs}`,
      },
    });
    const { app, bot: call } = service;
    const owner = await service.newUser('olga');
    const bot = await service.newBot(owner, 'signed');
    await service.openChat(owner, bot);
    const { secret } = await resultOf(app(owner, 'GET', `/api/me/bots/${bot.id}/webhook/secret`));
    const shown: Shown[] = [];
    /** The answers that the receiver gives to each text, in order. When no answer is left, the receiver answers 200. */
    const refusals = new Map<string, Array<() => Record<string, string>>>();
    receiver = await startReceiver(certificate, (request, response, body) => {
      const { text } = JSON.parse(body.toString()).message;
      let verified = true;
      try {
        // The library refuses a signature whose timestamp differs from its own clock by more than five minutes.
        new Webhook(secret).verify(body, request.headers as Record<string, string>);
      } catch {
        verified = false;
      }
      shown.push({ text, atMs: performance.now(), verified });
      const refusal = refusals.get(text)?.shift();
      // Sends no Date header, so that the sender compares a Retry-After date with the time at which the answer arrived.
      response.sendDate = false;
      response.writeHead(refusal ? 503 : 200, refusal?.()).end();
    });
    const url = `https://127.0.0.1:${receiver.port}/`;
    const hook = { url, certificate: certificate.cert, drop_pending_updates: true };
    await resultOf(call(bot, 'setWebhook', hook));
    const say = (text: string) => resultOf(app(owner, 'POST', `/api/chats/${bot.id}/messages`, { text }));
    const attempts = (text: string) => shown.filter((each) => each.text === text);
    const pending = async () => (await resultOf(call(bot, 'getWebhookInfo'))).pending_update_count;

    await say('plain');
    refusals.set('fails twice', [() => ({}), () => ({})]);
    await say('fails twice');
    refusals.set('later', [() => ({ 'retry-after': new Date(Date.now() + 3_000).toUTCString() })]);
    await say('later');
    await expect.poll(() => attempts('later').length, { timeout: 60_000 }).toBe(2);
    await expect.poll(pending, { timeout: 20_000 }).toBe(0);

    const rejected = shown.filter(({ verified }) => !verified).length;
    expect(attempts('fails twice')).toHaveLength(3);
    const [asked, came] = attempts('later');
    // The Retry-After date was 3 s ahead. The delay may be about a second shorter, because an HTTP date has only whole
    // seconds.
    expect((came?.atMs ?? 0) - (asked?.atMs ?? 0)).toBeGreaterThan(1_500);
    const page = await resultOf(app(owner, 'GET', `/api/me/bots/${bot.id}/webhook/deliveries`));
    const off = page.items.map(({ date }: { date: number }) => Math.abs(date - Date.now() / 1_000));
    report('R23', `clocks an hour ${shiftMs > 0 ? 'ahead' : 'behind'}`, { deliveries: shown.length }, [
      atMost('deliveries that the receiver rejected', rejected, 0),
      atMost('seconds that an attempt is dated wrong', Math.max(...off), 300),
    ]);
    expect([rejected, shown.length]).toEqual([0, 6]);
    expect(Math.max(...off)).toBeLessThan(300);
  },
  patienceMs,
);
