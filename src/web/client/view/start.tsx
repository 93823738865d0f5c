/** Shows a bot that the person has not started: its picture, its description, and a start button. */
import { useEffect, useState } from 'react';
import { call } from '../api.js';
import { reasonOf } from '../failures.js';
import { chats } from '../model/chats.js';
import { profiles } from '../names.js';
import { say } from '../notes.js';
import { go } from '../route.js';
import { useSignal } from '../signal.js';
import type { BotPage } from '../types.js';
import { t } from '../words.js';
import { Icon } from './icons.js';
import { Face, Spinner, useFile } from './ui.js';

/** Opens the direct chat with a bot and sends /start there. */
export async function startBot(bot: BotPage): Promise<void> {
  await call('POST', `/api/bots/${bot.username}/start`, {});
  await chats.refresh(bot.id);
  go(`chat/${bot.id}`);
}

export function StartPicture({ bot }: { bot: BotPage }) {
  const { url } = useFile(bot.start_picture?.url);
  if (!bot.start_picture) return null;
  return <div className="start-picture">{url && <img src={url} alt="" width="640" height="360" />}</div>;
}

export function StartScreen({ username }: { username: string }) {
  useSignal(profiles);
  const bot = profiles.read(username);
  const [busy, setBusy] = useState(false);
  useEffect(() => void profiles.load(username, true), [username]);
  useEffect(() => {
    if (bot && chats.byId.has(bot.id)) go(`chat/${bot.id}`);
  }, [bot]);
  const start = async () => {
    if (!bot) return;
    setBusy(true);
    try {
      await startBot(bot);
    } catch (error) {
      say(reasonOf(error));
      setBusy(false);
    }
  };
  return (
    <main className="main start">
      <header className="bar chat-bar">
        <a className="icon-button only-narrow" href="#/" aria-label={t('back')}>
          <Icon name="back" />
        </a>
        {bot && (
          <span className="chat-title">
            <Face id={bot.id} name={bot.name} picture={bot.avatar} size={42} />
            <span>
              <strong>
                <bdi>{bot.name}</bdi>
              </strong>
              <small>{t('bot')}</small>
            </span>
          </span>
        )}
      </header>
      <div className="start-body">
        {bot === undefined && <Spinner />}
        {bot === null && <p className="empty">{t('nobody_has', { name: username })}</p>}
        {bot && (
          <div className="start-card">
            <StartPicture bot={bot} />
            {!bot.start_picture && <Face id={bot.id} name={bot.name} picture={bot.avatar} size={112} />}
            <h2>
              <bdi>{bot.name}</bdi>
            </h2>
            <p className="muted">@{bot.username}</p>
            {bot.description && (
              <section>
                <h3>{t('what_it_does')}</h3>
                <p className="pre-line" dir="auto">
                  {bot.description}
                </p>
              </section>
            )}
          </div>
        )}
      </div>
      {bot && (
        <footer className="start-foot">
          {bot.can_write ? (
            <button
              type="button"
              className="button primary large"
              disabled={busy}
              onClick={() => void start()}
            >
              {t('start')}
            </button>
          ) : (
            <p className="closed">{t('cant_write')}</p>
          )}
        </footer>
      )}
    </main>
  );
}
