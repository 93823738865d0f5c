/** Shows the section "My bots": the list, the form for a new bot, and the pages of one bot. */
import { useState } from 'react';
import { call } from '../api.js';
import { attempt, reasonOf } from '../failures.js';
import { profiles } from '../names.js';
import { usePages } from '../pages.js';
import { go } from '../route.js';
import { useSignal } from '../signal.js';
import type { OwnedBot } from '../types.js';
import { Icon } from '../view/icons.js';
import { Dialog, Empty, Face, Failure, Field, Spinner, Trouble } from '../view/ui.js';
import { t } from '../words.js';
import '../words/later.js';
import { BotPages } from './bot.js';
import { CodeSample } from './code.js';

interface Made {
  id: number;
  username: string;
}

export const botName_max = 64;

function NewBot({ close, made }: { close: () => void; made: (bot: Made) => void }) {
  const [name, setName] = useState('');
  const [username, setUsername] = useState('');
  const [failure, setFailure] = useState('');
  const [busy, setBusy] = useState(false);
  const make = async () => {
    setBusy(true);
    try {
      const clean = username.trim().replace(/^@/, '');
      const { id } = await call<Made>('POST', '/api/me/bots', { name, username: clean });
      made({ id, username: clean });
    } catch (error) {
      setFailure(reasonOf(error));
      setBusy(false);
    }
  };
  return (
    <Dialog title={t('new_bot')} close={close}>
      <form
        className="stack"
        onSubmit={(event) => {
          event.preventDefault();
          void make();
        }}
      >
        <Field label={t('name')} value={name} set={setName} max={botName_max} required />
        <Field
          label={t('username')}
          value={username}
          set={setUsername}
          hint={t('bot_username_hint')}
          placeholder="weather_bot"
          required
        />
        <Failure text={failure} />
        <div className="row end dialog-foot">
          <button type="button" className="button" onClick={close}>
            {t('cancel')}
          </button>
          <button
            type="submit"
            className="button primary"
            disabled={busy || !name.trim() || !username.trim()}
          >
            {t('create')}
          </button>
        </div>
      </form>
    </Dialog>
  );
}

interface Transfer {
  bot_id: number;
  bot_username: string;
  from_id: number;
  to_id: number;
}

function More({ load }: { load: () => void }) {
  return (
    <button type="button" className="button" onClick={load}>
      {t('more')}
    </button>
  );
}

/**
 * Shows the bots that others offered to the person. Offers exist only on installations where a transfer needs consent.
 */
function Offers({ changed }: { changed: () => void }) {
  const { items: offers, cursor, load } = usePages<Transfer>('/api/me/transfers');
  const answer = async (id: number, what: 'accept' | 'decline') => {
    await attempt(async () => {
      await call('POST', `/api/me/transfers/${id}/${what}`);
    });
    void load();
    changed();
  };
  return (
    <>
      {offers?.map(({ bot_id, bot_username }) => (
        <div className="card row" key={bot_id}>
          <span className="grow">{t('offered', { name: `@${bot_username}` })}</span>
          <button type="button" className="button" onClick={() => void answer(bot_id, 'decline')}>
            {t('decline')}
          </button>
          <button type="button" className="button primary" onClick={() => void answer(bot_id, 'accept')}>
            {t('accept')}
          </button>
        </div>
      ))}
      {cursor && <More load={() => void load(cursor)} />}
    </>
  );
}

function BotList({ making: begun }: { making: boolean }) {
  useSignal(profiles);
  const { items: bots, cursor, failure, load } = usePages<OwnedBot>('/api/me/bots');
  const [making, setMaking] = useState(begun);
  return (
    <main className="main page">
      <header className="bar">
        <a className="icon-button only-narrow" href="#/" aria-label={t('back')}>
          <Icon name="back" />
        </a>
        <h2 className="bar-title">{t('my_bots')}</h2>
        <button type="button" className="button primary" onClick={() => setMaking(true)}>
          <Icon name="plus" size={18} /> {t('new_bot')}
        </button>
      </header>
      <div className="page-body">
        {failure && <Trouble text={failure} retry={() => void load(cursor)} />}
        {!bots && !failure && <Spinner />}
        <Offers changed={() => void load()} />
        {bots?.length === 0 && (
          <Empty icon="bot" text={t('no_bots')}>
            <button type="button" className="button" onClick={() => setMaking(true)}>
              {t('create_bot')}
            </button>
          </Empty>
        )}
        <ul className="bot-list">
          {bots?.map((bot) => (
            <li key={bot.id}>
              <a className="card row" href={`#/bots/${bot.id}`}>
                <Face id={bot.id} name={bot.name} picture={profiles.read(bot.username)?.avatar} size={48} />
                <span className="grow">
                  <strong>
                    <bdi>{bot.name}</bdi>
                  </strong>
                  <small>@{bot.username}</small>
                </span>
              </a>
            </li>
          ))}
        </ul>
        {cursor && <More load={() => void load(cursor)} />}
        {bots?.[0] && <CodeSample bot={bots[0]} />}
      </div>
      {making && (
        <NewBot
          close={() => {
            setMaking(false);
            go('bots');
          }}
          made={({ id }) => {
            setMaking(false);
            go(`bots/${id}`);
          }}
        />
      )}
    </main>
  );
}

export default function Bots({ id, tab }: { id: string; tab: string }) {
  if (id === '' || id === 'new') return <BotList key={id} making={id === 'new'} />;
  return <BotPages key={id} id={Number(id)} tab={tab} />;
}
