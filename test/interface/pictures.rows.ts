/** Interface tests of the pictures of bots (interface §2), and of the size of pictures (§8). */
import sharp from 'sharp';
import { expect } from 'vitest';
import { png } from '../support/samples.js';
import type { Bot, Case } from './case.js';
import { bad, ok, type Row, row, unauthorized } from './row.js';

const pathOf = (bot: Bot, kind: string) => `/api/me/bots/${bot.id}/${kind}`;
const put = (c: Case, token: string, path: string, bytes: Buffer) =>
  c.http('PUT', path, { authorization: `Bearer ${token}`, 'content-type': 'image/png' }, bytes);
const page = (c: Case, bot: Bot) => c.appResult(c.ann, 'GET', `/api/bots/${bot.username}`);

const sized = (width: number, height: number) => ({
  ...{ width, height, file_size: expect.any(Number) },
  url: expect.stringMatching(/^\/api\/files\/[\w-]+$/),
});

async function seen(c: Case, url: string) {
  const answer = await fetch(`${c.url}${url}`, { headers: { authorization: `Bearer ${c.ann.token}` } });
  expect(answer.status).toBe(200);
  return sharp(Buffer.from(await answer.arrayBuffer()))
    .ensureAlpha()
    .raw()
    .toBuffer({ resolveWithObject: true });
}

export const pictureRows: readonly Row[] = [
  row({
    title:
      '§2 Other identity items: start picture, set in the application → 640x360, shown before Start is pressed',
    arrange: (c) => c.bot(),
    act: (c, bot) => put(c, c.owner.token, pathOf(bot, 'start_picture'), png(640, 360)),
    answer: () => ok(sized(640, 360)),
    async after(c, bot, { body }) {
      expect((await page(c, bot)).start_picture).toEqual(body.result);
      const { info } = await seen(c, body.result.url);
      expect([info.width, info.height]).toEqual([640, 360]);
    },
  }),
  row({
    title: '§8 Start picture size: one pixel more than its size is refused',
    async arrange(c) {
      const bot = await c.bot();
      await put(c, c.owner.token, pathOf(bot, 'start_picture'), png(640, 360));
      return bot;
    },
    act: (c, bot) => put(c, c.owner.token, pathOf(bot, 'start_picture'), png(640, 361)),
    answer: () => bad('start picture must be 640x360 pixels'),
  }),
  row({
    title: '§2 Other identity items: avatar, set in the application → cropped to a circle automatically',
    arrange: (c) => c.bot(),
    act: (c, bot) => put(c, c.owner.token, pathOf(bot, 'avatar'), png(300, 200)),
    answer: () => ok({ ...sized(512, 512), small: sized(128, 128) }),
    async after(c, bot, { body }) {
      expect((await page(c, bot)).avatar).toEqual(body.result);
      for (const { url } of [body.result, body.result.small]) {
        const { data, info } = await seen(c, url);
        const alpha = (x: number, y: number) => data[(y * info.width + x) * 4 + 3];
        const [middle, edge] = [info.width / 2, info.width - 1];
        expect([alpha(0, 0), alpha(edge, 0), alpha(0, edge), alpha(edge, edge)]).toEqual([0, 0, 0, 0]);
        expect([alpha(middle, middle), alpha(middle, 2), alpha(2, middle)]).toEqual([255, 255, 255]);
      }
    },
  }),
  ...(['avatar', 'start_picture'] as const).map((kind) =>
    row({
      title: `§2 Other identity items: ${kind} with the token of the bot → refused, because it can be set only in the application`,
      arrange: (c) => c.bot(),
      act: (c, bot) => put(c, bot.token, pathOf(bot, kind), png(640, 360)),
      answer: () => unauthorized,
    }),
  ),
];
