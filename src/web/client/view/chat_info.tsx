/** The details of a chat: the page of a bot, or the members of a group or channel. */
import { useState } from 'react';
import { call, get } from '../api.js';
import { reasonOf } from '../failures.js';
import { chats, isMuted } from '../model/chats.js';
import { chatName, personName, profiles } from '../names.js';
import { say } from '../notes.js';
import { usePages } from '../pages.js';
import { pushServed } from '../push.js';
import { go } from '../route.js';
import { me } from '../session.js';
import { useCell, useSignal } from '../signal.js';
import type { ChatSummary, Member } from '../types.js';
import { fullDate, t } from '../words.js';
import { Icon } from './icons.js';
import { StartPicture, startBot } from './start.js';
import { Confirm, Dialog, Face, Field, Trouble } from './ui.js';

function BotInfo({ chat, close }: { chat: ChatSummary; close: () => void }) {
  useSignal(profiles);
  const bot = profiles.read(chat.username);
  const name = chatName(chat);
  const block = async () => {
    try {
      await call('POST', `/api/bots/${chat.username}/block`);
      say(t('blocked'));
      close();
    } catch (error) {
      say(reasonOf(error));
    }
  };
  return (
    <div className="profile">
      <Face id={chat.id} name={name} picture={bot?.avatar} size={112} />
      <h3>
        <bdi>{name}</bdi>
      </h3>
      {chat.username && <p className="muted">@{chat.username}</p>}
      {bot?.short_description && (
        <p className="pre-line" dir="auto">
          {bot.short_description}
        </p>
      )}
      {bot?.start_picture && <StartPicture bot={bot} />}
      {bot?.description && (
        <section>
          <h4>{t('what_it_does')}</h4>
          <p className="pre-line" dir="auto">
            {bot.description}
          </p>
        </section>
      )}
      {(bot?.commands?.length ?? 0) > 0 && (
        <section>
          <h4>{t('commands')}</h4>
          <dl className="commands">
            {bot?.commands?.map(({ command, description }) => (
              <div key={command}>
                <dt>/{command}</dt>
                <dd>{description}</dd>
              </div>
            ))}
          </dl>
        </section>
      )}
      {chat.username && (
        <div className="row">
          <button type="button" className="button" onClick={() => void block()}>
            {t('block')}
          </button>
          {bot && (
            <button
              type="button"
              className="button"
              onClick={() => {
                close();
                startBot(bot).catch((error) => say(reasonOf(error)));
              }}
            >
              {t('restart')}
            </button>
          )}
        </div>
      )}
    </div>
  );
}

function AddMember({ chat, added }: { chat: ChatSummary; added: () => void }) {
  const [username, setUsername] = useState('');
  const [asAdmin, setAsAdmin] = useState(false);
  const [failure, setFailure] = useState('');
  const add = async () => {
    setFailure('');
    try {
      const name = encodeURIComponent(username.trim().replace(/^@/, ''));
      const { id } = await get<{ id: number }>(`/api/names/${name}`);
      const rights = {
        can_pin_messages: true,
        can_edit_messages: true,
        can_post_messages: true,
        can_delete_messages: true,
        can_invite_users: false,
      };
      const role = asAdmin ? { status: 'administrator', rights } : { status: 'member' };
      const { status } = await call<Member>('PUT', `/api/chats/${chat.id}/members/${id}`, role);
      if (status === 'invited') say(t('invited', { name: `@${username.trim().replace(/^@/, '')}` }));
      setUsername('');
      added();
    } catch (error) {
      setFailure(reasonOf(error));
    }
  };
  return (
    <form
      className="stack"
      onSubmit={(event) => {
        event.preventDefault();
        void add();
      }}
    >
      <Field label={t('add_member')} value={username} set={setUsername} placeholder="alice" />
      <label className="check">
        <input type="checkbox" checked={asAdmin} onChange={(event) => setAsAdmin(event.target.checked)} />
        {t('as_administrator')}
      </label>
      {failure && (
        <p className="failure" role="alert">
          {failure}
        </p>
      )}
      <button type="submit" className="button" disabled={username.trim() === ''}>
        {t('add')}
      </button>
    </form>
  );
}

function SharedInfo({ chat, close }: { chat: ChatSummary; close: () => void }) {
  const { items, cursor, failure, load } = usePages<Member>(`/api/chats/${chat.id}/members`);
  const [leaving, setLeaving] = useState(false);
  const members = items ?? [];
  const own = members.find(({ user }) => user?.id === me.value?.id);
  const manages = own?.status === 'creator' || own?.rights.can_invite_users === true;
  const remove = async (member: Member) => {
    try {
      await call('DELETE', `/api/chats/${chat.id}/members/${member.user?.id}`);
      await load();
    } catch (error) {
      say(reasonOf(error));
    }
  };
  const leave = async () => {
    try {
      await call('POST', `/api/chats/${chat.id}/leave`);
      await chats.refresh(chat.id);
      close();
      go('');
    } catch (error) {
      say(reasonOf(error));
    }
  };
  return (
    <div className="profile">
      <Face id={chat.id} name={chatName(chat)} size={112} />
      <h3>
        <bdi>{chatName(chat)}</bdi>
      </h3>
      <p className="muted">
        {chat.username ? `@${chat.username} · ` : ''}
        {t('members_count', { n: chat.member_count ?? members.length })}
      </p>
      <ul className="people">
        {members.map((member) => (
          <li key={member.user?.id}>
            <Face id={member.user?.id ?? 0} name={personName(member.user ?? undefined)} size={36} />
            <span className="grow">
              <bdi>{personName(member.user ?? undefined)}</bdi>
              <small>
                {member.user?.is_bot ? `${t('bot')} · ` : ''}
                {member.status === 'member'
                  ? t('member')
                  : t(member.status === 'creator' ? 'creator' : 'administrator')}
              </small>
            </span>
            {manages && member.status !== 'creator' && member.user?.id !== me.value?.id && (
              <button
                type="button"
                className="icon-button"
                aria-label={t('remove_member', { name: personName(member.user ?? undefined) })}
                onClick={() => void remove(member)}
              >
                <Icon name="close" size={18} />
              </button>
            )}
          </li>
        ))}
      </ul>
      {/* Only the administrators of a channel see its subscribers. */}
      {failure && chat.type === 'group' && <Trouble text={failure} retry={() => void load(cursor)} />}
      {cursor && (
        <button type="button" className="button" onClick={() => void load(cursor)}>
          {t('more')}
        </button>
      )}
      {manages && <AddMember chat={chat} added={() => void load()} />}
      {own?.status !== 'creator' && (
        <button type="button" className="button danger" onClick={() => setLeaving(true)}>
          {t('leave')}
        </button>
      )}
      {leaving && (
        <Confirm
          title={t('leave')}
          text={t('leave_hint', { name: chatName(chat) })}
          action={t('leave')}
          danger
          close={() => setLeaving(false)}
          act={() => void leave()}
        />
      )}
    </div>
  );
}

/** Durations of a mute in hours; 0 means without an end. */
const mutes = [1, 8, 0] as const;

/** Mutes and unmutes the chat for the person. */
function Mute({ chat }: { chat: ChatSummary }) {
  useSignal(chats);
  const served = useCell(pushServed);
  const now = chats.byId.get(chat.id) ?? chat;
  const change = async (verb: 'PUT' | 'DELETE', hours = 0) => {
    const until = Math.floor(Date.now() / 1_000) + hours * 3_600;
    try {
      await call(verb, `/api/chats/${chat.id}/mute`, hours === 0 ? undefined : { until });
      await chats.refresh(chat.id);
    } catch (error) {
      say(reasonOf(error));
    }
  };
  if (!served && !isMuted(now)) return null;
  if (isMuted(now))
    return (
      <div className="row">
        <Icon name="bell_off" size={18} />
        <span className="grow">
          {now.muted_until === undefined ? t('muted') : t('muted_until', { date: fullDate(now.muted_until) })}
        </span>
        <button type="button" className="button" onClick={() => void change('DELETE')}>
          {t('unmute')}
        </button>
      </div>
    );
  return (
    <fieldset className="mute">
      <legend>{t('mute')}</legend>
      {mutes.map((hours) => (
        <button key={hours} type="button" className="button" onClick={() => void change('PUT', hours)}>
          {hours === 0 ? t('mute_forever') : t('mute_hours', { n: hours })}
        </button>
      ))}
    </fieldset>
  );
}

export function ChatInfo({ chat, close }: { chat: ChatSummary; close: () => void }) {
  return (
    <Dialog title={t('about', { name: chatName(chat) })} close={close}>
      {chats.byId.has(chat.id) && <Mute chat={chat} />}
      {chat.type === 'private' ? (
        <BotInfo chat={chat} close={close} />
      ) : (
        <SharedInfo chat={chat} close={close} />
      )}
    </Dialog>
  );
}
