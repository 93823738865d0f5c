/** Shows an example program that answers messages as this bot, for the person to copy. */

import { copyText } from '../clipboard.js';
import { reasonOf } from '../failures.js';
import { say } from '../notes.js';
import type { OwnedBot } from '../types.js';
import { Icon } from '../view/icons.js';
import { t } from '../words.js';

const sample = `// bot.mjs
import { Bot, InlineKeyboard } from 'grammy';

const bot = new Bot(process.env.BOT_TOKEN, {
  client: { apiRoot: '${location.origin}' },
});
const keyboard = new InlineKeyboard().text('Press me', 'pressed');
bot.command('start', (ctx) => ctx.reply('Hello!', { reply_markup: keyboard }));
bot.callbackQuery('pressed', (ctx) => ctx.answerCallbackQuery('Well done'));
bot.on('message:text', (ctx) => ctx.reply(ctx.message.text));
bot.start();
`;

export function copy(text: string): void {
  copyText(text).then(
    () => say(t('copied')),
    (error) => say(reasonOf(error)),
  );
}

export function CodeSample({ bot }: { bot: OwnedBot }) {
  return (
    <section className="card stack">
      <header className="row wrap">
        <h3 className="grow">{t('try_it')}</h3>
        <a className="button" href={`#/to/${bot.username}`}>
          <Icon name="chat" size={18} /> {t('open_chat')}
        </a>
        <button type="button" className="button" onClick={() => copy(sample)}>
          <Icon name="copy" size={18} /> {t('copy')}
        </button>
      </header>
      <p className="muted">{t('try_it_hint')}</p>
      {/* biome-ignore lint/a11y/noNoninteractiveTabindex: long lines are scrolled by the keyboard too */}
      <pre className="code" tabIndex={0} dir="ltr">
        {sample}
      </pre>
      {/* biome-ignore lint/a11y/noNoninteractiveTabindex: long lines are scrolled by the keyboard too */}
      <pre className="code" tabIndex={0} dir="ltr">{`npm install grammy\nBOT_TOKEN=… node bot.mjs`}</pre>
    </section>
  );
}
