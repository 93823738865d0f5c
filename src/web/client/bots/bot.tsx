/** Shows the settings of one of the person's bots, on several small pages. */
import { useCallback, useEffect, useRef, useState } from 'react';
import { call, get } from '../api.js';
import { copyText } from '../clipboard.js';
import { attempt, reasonOf } from '../failures.js';
import { say } from '../notes.js';
import { go } from '../route.js';
import type { BotProps, OwnedBotSettings, Page } from '../types.js';
import { Icon } from '../view/icons.js';
import { Confirm, Dialog, Face, Field, Spinner, Trouble } from '../view/ui.js';
import { t, type WordKey } from '../words.js';
import { CodeSample } from './code.js';
import { InlinePage } from './inline.js';
import { Pictures } from './pictures.js';
import { TextsPage } from './texts.js';
import { WebhookPage } from './webhook.js';

const tabs = ['', 'texts', 'pictures', 'writers', 'inline', 'webhook', 'transfer'] as const;

/** Copies the token to the clipboard without showing it. */
function TokenPage({ bot }: BotProps) {
  const [renewing, setRenewing] = useState(false);
  const copyToken = async (verb: 'GET' | 'POST') => {
    const path = verb === 'GET' ? 'token' : 'regenerate_token';
    await attempt(async () => {
      const { token } = await call<{ token: string }>(verb, `/api/me/bots/${bot.id}/${path}`);
      await copyText(token);
      say(t(verb === 'GET' ? 'token_copied' : 'token_renewed'));
    });
  };
  return (
    <>
      <section className="card stack">
        <h3>{t('token')}</h3>
        <p className="muted">{t('token_hint')}</p>
        <code className="masked" aria-hidden="true">
          {bot.id}:••••••••••••••••••••
        </code>
        <div className="row wrap">
          <button type="button" className="button primary" onClick={() => void copyToken('GET')}>
            <Icon name="copy" size={18} /> {t('copy_token')}
          </button>
          <button type="button" className="button danger" onClick={() => setRenewing(true)}>
            <Icon name="refresh" size={18} /> {t('renew_token')}
          </button>
        </div>
      </section>
      <CodeSample bot={bot} />
      {renewing && (
        <Confirm
          title={t('renew_token')}
          text={t('renew_hint')}
          action={t('renew_token')}
          danger
          close={() => setRenewing(false)}
          act={() => void copyToken('POST')}
        />
      )}
    </>
  );
}

function WritersPage({ bot, changed }: BotProps) {
  const [policy, setPolicy] = useState(bot.write_access.policy);
  const [names, setNames] = useState((bot.write_access.usernames ?? []).map((name) => `@${name}`).join('\n'));
  const [busy, setBusy] = useState(false);
  const save = async () => {
    setBusy(true);
    await attempt(async () => {
      const usernames = names.split(/[\s,]+/).filter(Boolean);
      await call('PUT', `/api/me/bots/${bot.id}/write_access`, {
        policy,
        ...(policy === 'selected' ? { usernames } : {}),
      });
      say(t('saved'));
      changed();
    });
    setBusy(false);
  };
  return (
    <form
      className="card stack"
      onSubmit={(event) => {
        event.preventDefault();
        void save();
      }}
    >
      <fieldset className="choices">
        <legend>{t('writers')}</legend>
        {(['all', 'selected', 'owner'] as const).map((one) => (
          <label key={one} className="choice">
            <input type="radio" name="policy" checked={policy === one} onChange={() => setPolicy(one)} />
            <span>{t(`writers_${one}`)}</span>
          </label>
        ))}
      </fieldset>
      {policy === 'selected' && (
        <Field label={t('usernames')} value={names} set={setNames} multiline placeholder="@alice" />
      )}
      <div className="row end">
        <button type="submit" className="button primary" disabled={busy}>
          {t('save')}
        </button>
      </div>
    </form>
  );
}

function TransferPage({ bot }: BotProps) {
  const [username, setUsername] = useState('');
  const [asking, setAsking] = useState<'transfer' | 'delete' | null>(null);
  const [typed, setTyped] = useState('');
  const name = username.trim().replace(/^@/, '');
  /** Clears the typed text, because a text that was typed to confirm one action must not confirm another. */
  const ask = (what: 'transfer' | 'delete') => {
    setTyped('');
    setAsking(what);
  };
  const run = async (work: () => Promise<WordKey>) => {
    try {
      const done = await work();
      setAsking(null);
      say(t(done, { bot: `@${bot.username}`, name: `@${name}` }));
      go('bots');
    } catch (error) {
      setAsking(null);
      say(reasonOf(error));
    }
  };
  const remove = () =>
    run(async () => {
      await call('DELETE', `/api/me/bots/${bot.id}`);
      return 'bot_deleted';
    });
  const transfer = () =>
    run(async () => {
      await call('POST', `/api/me/bots/${bot.id}/transfer`, { username: name, confirm: true });
      // On some installations, the new owner must first accept the bot.
      const offers = await get<Page<{ bot_id: number }>>('/api/me/transfers');
      return offers.items.some((offer) => offer.bot_id === bot.id) ? 'bot_offered' : 'bot_transferred';
    });
  return (
    <>
      <form
        className="card stack"
        onSubmit={(event) => {
          event.preventDefault();
          ask('transfer');
        }}
      >
        <h3>{t('transfer')}</h3>
        <p className="muted">{t('transfer_hint')}</p>
        <Field label={t('new_owner')} value={username} set={setUsername} placeholder="@bob" />
        <div className="row end">
          <button type="submit" className="button danger" disabled={name === ''}>
            {t('transfer')}
          </button>
        </div>
      </form>
      <section className="card stack">
        <h3>{t('delete_bot')}</h3>
        <p className="muted">{t('delete_bot_hint')}</p>
        <div className="row end">
          <button type="button" className="button danger" onClick={() => ask('delete')}>
            {t('delete_bot')}
          </button>
        </div>
      </section>
      {asking && (
        <Dialog title={t(asking === 'delete' ? 'delete_bot' : 'transfer')} close={() => setAsking(null)}>
          <div className="stack">
            <p>
              {asking === 'delete'
                ? t('delete_bot_hint')
                : t('transfer_confirm', { bot: `@${bot.username}`, name: `@${name}` })}
            </p>
            <Field label={t('type_to_confirm', { name: bot.username })} value={typed} set={setTyped} />
            <div className="row end dialog-foot">
              <button type="button" className="button" onClick={() => setAsking(null)}>
                {t('cancel')}
              </button>
              <button
                type="button"
                className="button danger"
                disabled={typed.trim().replace(/^@/, '') !== bot.username}
                onClick={() => void (asking === 'delete' ? remove() : transfer())}
              >
                {t(asking === 'delete' ? 'delete_bot' : 'transfer')}
              </button>
            </div>
          </div>
        </Dialog>
      )}
    </>
  );
}

const pages = {
  '': TokenPage,
  texts: TextsPage,
  pictures: Pictures,
  writers: WritersPage,
  inline: InlinePage,
  webhook: WebhookPage,
  transfer: TransferPage,
};

export function BotPages({ id, tab }: { id: number; tab: string }) {
  const [bot, setBot] = useState<OwnedBotSettings | null>(null);
  const [failure, setFailure] = useState('');
  const load = useCallback(() => {
    setFailure('');
    get<OwnedBotSettings>(`/api/me/bots/${id}`).then(setBot, (error) => setFailure(reasonOf(error)));
  }, [id]);
  useEffect(load, [load]);
  const chosen = tabs.find((one) => one === tab) ?? '';
  const Shown = pages[chosen];
  const nav = useRef<HTMLElement>(null);
  // biome-ignore lint/correctness/useExhaustiveDependencies: on a narrow screen the chosen tab may be out of sight
  useEffect(() => {
    const show = () =>
      nav.current?.querySelector('[aria-current]')?.scrollIntoView({ inline: 'center', block: 'nearest' });
    show();
    addEventListener('resize', show);
    return () => removeEventListener('resize', show);
  }, [chosen]);
  return (
    <main className="main page">
      <header className="bar">
        <a className="icon-button" href="#/bots" aria-label={t('back')}>
          <Icon name="back" />
        </a>
        {bot && <Face id={bot.id} name={bot.name} picture={bot.avatar} size={40} />}
        <h2 className="bar-title">
          <bdi>{bot?.name ?? ''}</bdi> {bot && <small className="muted">@{bot.username}</small>}
        </h2>
      </header>
      <nav ref={nav} className="tabs scroll" aria-label={bot?.name ?? t('my_bots')}>
        {tabs.map((one) => (
          <a
            key={one}
            href={`#/bots/${id}${one && `/${one}`}`}
            aria-current={one === chosen ? 'page' : undefined}
          >
            {t(one === '' ? 'token' : `tab_${one}`)}
          </a>
        ))}
      </nav>
      <div className="page-body">
        {failure && <Trouble text={failure} retry={load} />}
        {!bot && !failure && <Spinner />}
        {bot && <Shown bot={bot} changed={load} />}
      </div>
    </main>
  );
}
