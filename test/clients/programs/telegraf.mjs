/** A Telegraf bot that prints each text it handles. The commands `/draft` and `/edit` send an answer word by word. */
import http, { Agent } from 'node:http';
import { Telegraf } from 'telegraf';
import { message } from 'telegraf/filters';

const { API_ROOT, BOT_TOKEN, HEADERS } = process.env;

/** Sets headers through the agent, because Telegraf has no option for headers. */
class HeaderAgent extends Agent {
  addRequest(request, ...rest) {
    for (const [name, value] of Object.entries(JSON.parse(HEADERS))) request.setHeader(name, value);
    super.addRequest(request, ...rest);
  }
}

// With `https:`, pass an agent of `node:https` as the option `telegram: { agent }`. With `http:`, Telegraf ignores this
// option and uses the global agent.
http.globalAgent = new HeaderAgent();

const bot = new Telegraf(BOT_TOKEN, { telegram: { apiRoot: API_ROOT } });

function* growing(text) {
  const words = text.split(' ');
  for (let n = 1; n <= words.length; n++) yield words.slice(0, n).join(' ');
}

bot.command('draft', async (ctx) => {
  const draft = { chat_id: ctx.chat.id, draft_id: ctx.msgId };
  for (const text of growing(ctx.payload)) await ctx.telegram.callApi('sendMessageDraft', { ...draft, text });
  await ctx.reply(ctx.payload);
});

bot.command('edit', async (ctx) => {
  const { message_id } = await ctx.reply('…');
  for (const text of growing(ctx.payload))
    await ctx.telegram.editMessageText(ctx.chat.id, message_id, undefined, text);
});

bot.on(message('text'), (ctx) => console.log(`handled ${ctx.chat.id} ${ctx.text}`));

bot.catch((error) => console.error(error));
bot.launch(() => console.log('ready'));
