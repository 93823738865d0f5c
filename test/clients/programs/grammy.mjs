/** A grammY bot that prints each text it handles. The commands `/draft` and `/edit` send an answer word by word. */
import { Bot } from 'grammy';

const { API_ROOT, BOT_TOKEN, HEADERS } = process.env;

const withHeaders = (url, init) => {
  const headers = new Headers(init.headers);
  for (const [name, value] of Object.entries(JSON.parse(HEADERS))) headers.set(name, value);
  // Passes an AbortSignal of Node.js instead of the signal from grammY, because `fetch` in newer versions of Node.js
  // accepts only signals of Node.js.
  const aborting = new AbortController();
  init.signal?.addEventListener('abort', () => aborting.abort());
  return fetch(url, { ...init, headers, signal: aborting.signal });
};

const bot = new Bot(BOT_TOKEN, { client: { apiRoot: API_ROOT, fetch: withHeaders } });

function* growing(text) {
  const words = text.split(' ');
  for (let n = 1; n <= words.length; n++) yield words.slice(0, n).join(' ');
}

bot.command('draft', async (ctx) => {
  for (const text of growing(ctx.match)) await ctx.api.sendMessageDraft(ctx.chat.id, ctx.msgId, text);
  await ctx.reply(ctx.match);
});

bot.command('edit', async (ctx) => {
  const { message_id } = await ctx.reply('…');
  for (const text of growing(ctx.match)) await ctx.api.editMessageText(ctx.chat.id, message_id, text);
});

bot.on('message:text', (ctx) => console.log(`handled ${ctx.chat.id} ${ctx.msg.text}`));

bot.catch(({ error }) => console.error(error));
bot.start({ onStart: () => console.log('ready') });
