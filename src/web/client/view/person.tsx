/**
 * Shows other people: a person's page, a chat in which one of the two people cannot write, and the list of blocked
 * people.
 */
import { useEffect, useState } from 'react';
import { call, get } from '../api.js';
import { attempt, reasonOf } from '../failures.js';
import { chats } from '../model/chats.js';
import { chatName, personName } from '../names.js';
import { usePages } from '../pages.js';
import { go } from '../route.js';
import { useSignal } from '../signal.js';
import type { BlockedPerson, ChatSummary, Person } from '../types.js';
import { t } from '../words.js';
import '../words/later.js';
import { Icon } from './icons.js';
import { Confirm, Face, Spinner, Trouble } from './ui.js';

const pathOf = (person: string | number) => `/api/people/${encodeURIComponent(person)}`;

/** Opens the chat with a person, who is given by username or id. */
export async function openPerson(person: string | number): Promise<void> {
  const chat = await call<ChatSummary>('POST', `${pathOf(person)}/chat`);
  await chats.refresh(chat.id);
  go(`chat/${chat.id}`);
}

interface BlockProps {
  person: string | number;
  name: string;
  isBlocked: boolean;
  changed: () => void | Promise<void>;
}

/** Shows a button that blocks the person after a confirmation, or unblocks the person immediately. */
function Block({ person, name, isBlocked, changed }: BlockProps) {
  const [asking, setAsking] = useState(false);
  const set = (verb: 'POST' | 'DELETE') =>
    attempt(async () => {
      await call(verb, `${pathOf(person)}/block`);
      await changed();
    });
  if (isBlocked)
    return (
      <button type="button" className="button" onClick={() => void set('DELETE')}>
        {t('unblock')}
      </button>
    );
  return (
    <>
      <button type="button" className="button danger" onClick={() => setAsking(true)}>
        {t('block')}
      </button>
      {asking && (
        <Confirm
          title={t('block')}
          text={t('block_hint', { name })}
          action={t('block')}
          danger
          close={() => setAsking(false)}
          act={() => void set('POST')}
        />
      )}
    </>
  );
}

/** Shows the other person of a chat in the dialog with the chat's details. */
export function PersonInfo({ chat: given }: { chat: ChatSummary }) {
  useSignal(chats);
  const chat = chats.byId.get(given.id) ?? given;
  const name = chatName(chat);
  const isDeleted = !chat.first_name;
  return (
    <div className="profile">
      <Face id={chat.user_id ?? 0} name={name} picture={chat.avatar} size={112} />
      <h3>
        <bdi>{name}</bdi>
      </h3>
      {chat.username && <p className="muted">@{chat.username}</p>}
      {chat.user_id !== undefined && !isDeleted && (
        <Block
          person={chat.user_id}
          name={name}
          isBlocked={chat.blocked === true}
          changed={() => chats.refresh(chat.id)}
        />
      )}
    </div>
  );
}

/** Shows why nobody can write in a chat of two people, in the place of the composer. */
export function ClosedPerson({ chat }: { chat: ChatSummary }) {
  if (!chat.blocked || chat.user_id === undefined) return <p className="closed">{t('cant_write_person')}</p>;
  return (
    <div className="closed row center-row">
      <span>{t('person_blocked')}</span>
      <Block person={chat.user_id} name={chatName(chat)} isBlocked changed={() => chats.refresh(chat.id)} />
    </div>
  );
}

/** Shows a person, with the buttons to write and to block. */
export function PersonPage({ name: given }: { name: string }) {
  const [person, setPerson] = useState<Person | null>(null);
  const [failure, setFailure] = useState('');
  const [busy, setBusy] = useState(false);
  const load = () => {
    setFailure('');
    return get<Person>(pathOf(given)).then(setPerson, (error) => setFailure(reasonOf(error)));
  };
  // biome-ignore lint/correctness/useExhaustiveDependencies: loads once for each person
  useEffect(() => void load(), [given]);
  const write = async (id: number, username: string | undefined) => {
    setBusy(true);
    await attempt(() => openPerson(username ?? id));
    setBusy(false);
  };
  if (person === null)
    return (
      <main className="main center">
        {failure ? <Trouble text={failure} retry={() => void load()} /> : <Spinner />}
      </main>
    );
  const { user } = person;
  const name = personName(user);
  return (
    <main className="main page">
      <header className="bar">
        <a className="icon-button only-narrow" href="#/" aria-label={t('back')}>
          <Icon name="back" />
        </a>
        <h2 className="bar-title">
          <bdi>{name}</bdi>
        </h2>
      </header>
      <div className="page-body">
        <section className="card profile">
          <Face id={user.id} name={name} picture={person.avatar} size={112} />
          <h3>
            <bdi>{name}</bdi>
          </h3>
          {user.username && <p className="muted">@{user.username}</p>}
          {person.blocked && <p className="muted">{t('person_blocked')}</p>}
          <div className="row center-row">
            {(!person.blocked || person.chat_id !== undefined) && (
              <button
                type="button"
                className="button primary"
                disabled={busy}
                onClick={() => void write(user.id, user.username)}
              >
                {t(person.blocked ? 'open_chat' : 'write_message')}
              </button>
            )}
            <Block
              person={user.username ?? user.id}
              name={name}
              isBlocked={person.blocked === true}
              changed={load}
            />
          </div>
        </section>
      </div>
    </main>
  );
}

/** Lists the blocked people in the settings. */
export function BlockedPeople() {
  const { items, cursor, failure, load } = usePages<BlockedPerson>('/api/me/blocked_people');
  return (
    <>
      <h3>{t('blocked_people')}</h3>
      {failure && <Trouble text={failure} retry={() => void load(cursor)} />}
      {items?.length === 0 && <p className="muted">{t('no_blocked_people')}</p>}
      <ul className="people">
        {items?.map(({ user }) => (
          <li key={user.id}>
            <Face id={user.id} name={personName(user)} size={36} />
            <span className="grow">
              <bdi>{personName(user)}</bdi>
              {user.username && <small>@{user.username}</small>}
            </span>
            <Block person={user.id} name={personName(user)} isBlocked changed={() => load()} />
          </li>
        ))}
      </ul>
      {cursor && (
        <button type="button" className="button" onClick={() => void load(cursor)}>
          {t('more')}
        </button>
      )}
    </>
  );
}
