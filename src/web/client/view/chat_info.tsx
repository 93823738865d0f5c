/** Shows the details of a direct chat with a bot, a chat of two people, a group or a channel. */
import { useEffect, useState } from 'react';
import { call, get } from '../api.js';
import { attempt, reasonOf } from '../failures.js';
import { chats, isMuted, setPlace } from '../model/chats.js';
import { chatName, personName, profiles } from '../names.js';
import { say } from '../notes.js';
import { usePages } from '../pages.js';
import { pushServed } from '../push.js';
import { go } from '../route.js';
import { me } from '../session.js';
import { useCell, useSignal } from '../signal.js';
import type { ChatMember, ChatSummary } from '../types.js';
import { fullDate, t, type WordKey } from '../words.js';
import '../words/later.js';
import { Icon } from './icons.js';
import { InviteLinks, JoinRequests } from './invite_links.js';
import { PersonInfo } from './person.js';
import { StartPicture, startBot } from './start.js';
import { Confirm, Dialog, Face, Failure, Field, Trouble } from './ui.js';

function BotInfo({ chat, close }: { chat: ChatSummary; close: () => void }) {
  useSignal(profiles);
  const bot = profiles.read(chat.username);
  const name = chatName(chat);
  const block = () =>
    attempt(async () => {
      await call('POST', `/api/bots/${chat.username}/block`);
      say(t('blocked'));
      close();
    });
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
                void attempt(() => startBot(bot));
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

/** The rights that a new administrator gets, unless a bot asks for other rights. */
const usualRights = {
  can_pin_messages: true,
  can_edit_messages: true,
  can_post_messages: true,
  can_delete_messages: true,
  can_invite_users: false,
};

function AddMember({ chat, added }: { chat: ChatSummary; added: () => void }) {
  const [username, setUsername] = useState('');
  const [asAdmin, setAsAdmin] = useState(false);
  const [failure, setFailure] = useState('');
  const add = async () => {
    setFailure('');
    try {
      const name = encodeURIComponent(username.trim().replace(/^@/, ''));
      const { id, type } = await get<{ id: number; type: string }>(`/api/names/${name}`);
      const page = type === 'bot' && asAdmin ? await profiles.load(name, true) : null;
      const asked = page?.administrator_rights?.[chat.type as 'group' | 'channel'];
      const rights = asked ? Object.fromEntries(asked.map((right) => [right, true])) : usualRights;
      const role = asAdmin ? { status: 'administrator', rights } : { status: 'member' };
      const { status } = await call<ChatMember>('PUT', `/api/chats/${chat.id}/members/${id}`, role);
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
      <Failure text={failure} />
      <button type="submit" className="button" disabled={username.trim() === ''}>
        {t('add')}
      </button>
    </form>
  );
}

/** Changes the title, the description and the photo of a group or channel. */
function EditChat({
  chat,
  description,
  saved,
}: {
  chat: ChatSummary;
  description: string;
  saved: () => void;
}) {
  const [title, setTitle] = useState(chatName(chat));
  const [about, setAbout] = useState(description);
  const [failure, setFailure] = useState('');
  const path = `/api/chats/${chat.id}`;
  const act = async (change: () => Promise<unknown>) => {
    setFailure('');
    try {
      await change();
      saved();
    } catch (error) {
      setFailure(reasonOf(error));
    }
  };
  return (
    <form
      className="stack"
      onSubmit={(event) => {
        event.preventDefault();
        void act(() => call('PATCH', path, { title, description: about }));
      }}
    >
      <Field label={t('title')} value={title} set={setTitle} max={128} />
      <Field label={t('description')} value={about} set={setAbout} max={255} multiline />
      <div className="row">
        <label className="button">
          {t('choose_picture')}
          <input
            className="sr-only"
            type="file"
            accept="image/png,image/jpeg,image/webp"
            onChange={({ target }) => {
              const file = target.files?.[0];
              if (file) void act(() => call('PUT', `${path}/photo`, file));
            }}
          />
        </label>
        {chat.avatar && (
          <button
            type="button"
            className="button"
            onClick={() => void act(() => call('DELETE', `${path}/photo`))}
          >
            {t('remove')}
          </button>
        )}
      </div>
      <Failure text={failure} />
      <button type="submit" className="button" disabled={title.trim() === ''}>
        {t('save')}
      </button>
    </form>
  );
}

interface MemberProps {
  member: ChatMember;
  /** Removes the member. Null if the person may not do this. */
  remove: ((member: ChatMember) => Promise<void>) | null;
}

function Member({ member, remove }: MemberProps) {
  const name = personName(member.user ?? undefined);
  return (
    <li>
      <Face id={member.user?.id ?? 0} name={name} picture={member.avatar} size={36} />
      <span className="grow">
        {member.user && !member.user.is_bot && member.user.id !== me.value?.id ? (
          <a href={`#/person/${member.user.id}`}>
            <bdi>{name}</bdi>
          </a>
        ) : (
          <bdi>{name}</bdi>
        )}
        <small>
          {member.user?.is_bot ? `${t('bot')} · ` : ''}
          {t(statusWords[member.status] ?? 'member')}
        </small>
      </span>
      {remove && (
        <button
          type="button"
          className="icon-button"
          aria-label={t('remove_member', { name })}
          onClick={() => void remove(member)}
        >
          <Icon name="close" size={18} />
        </button>
      )}
    </li>
  );
}

function Leave({ chat, left }: { chat: ChatSummary; left: () => void }) {
  const [asking, setAsking] = useState(false);
  const leave = () =>
    attempt(async () => {
      await call('POST', `/api/chats/${chat.id}/leave`);
      await chats.refresh(chat.id);
      left();
      go('');
    });
  return (
    <>
      <button type="button" className="button danger" onClick={() => setAsking(true)}>
        {t('leave')}
      </button>
      {asking && (
        <Confirm
          title={t('leave')}
          text={t('leave_hint', { name: chatName(chat) })}
          action={t('leave')}
          danger
          close={() => setAsking(false)}
          act={() => void leave()}
        />
      )}
    </>
  );
}

function SharedInfo({ chat: listed, close }: { chat: ChatSummary; close: () => void }) {
  useSignal(chats);
  const chat = chats.byId.get(listed.id) ?? listed;
  const { items, cursor, failure, load } = usePages<ChatMember>(`/api/chats/${chat.id}/members`);
  const [about, setAbout] = useState<string | null>(null);
  const [editing, setEditing] = useState(false);
  const readAbout = async (id: number) => {
    const { description = '' } = await get<ChatSummary>(`/api/chats/${id}`);
    setAbout(description);
  };
  // biome-ignore lint/correctness/useExhaustiveDependencies: loads the details only once for each chat
  useEffect(() => {
    readAbout(listed.id).catch(() => setAbout(null));
  }, [listed.id]);
  const members = items ?? [];
  const own = members.find(({ user }) => user?.id === me.value?.id);
  const isCreator = own?.status === 'creator';
  const manages = isCreator || own?.rights.can_invite_users === true;
  const edits = isCreator || own?.rights.can_change_info === true;
  const removable = ({ status, user }: ChatMember) =>
    isCreator
      ? user?.id !== me.value?.id
      : own?.rights.can_restrict_members === true && (status === 'member' || status === 'restricted');
  const remove = (member: ChatMember) =>
    attempt(async () => {
      await call('DELETE', `/api/chats/${chat.id}/members/${member.user?.id}`);
      await load();
    });
  return (
    <div className="profile">
      <Face id={chat.id} name={chatName(chat)} picture={chat.avatar} size={112} />
      <h3>
        <bdi>{chatName(chat)}</bdi>
      </h3>
      {about && (
        <p className="pre-line" dir="auto">
          {about}
        </p>
      )}
      <p className="muted">
        {chat.username ? `@${chat.username} · ` : ''}
        {t('members_count', { n: chat.member_count ?? members.length })}
      </p>
      {edits && about !== null && !editing && (
        <button type="button" className="button" onClick={() => setEditing(true)}>
          {t('edit')}
        </button>
      )}
      {editing && about !== null && (
        <EditChat
          chat={chat}
          description={about}
          saved={() => {
            setEditing(false);
            void attempt(() => readAbout(chat.id));
            void chats.refresh(chat.id);
          }}
        />
      )}
      <ul className="people">
        {members.map((member) => (
          <Member key={member.user?.id} member={member} remove={removable(member) ? remove : null} />
        ))}
      </ul>
      {/* Does not show this error for a channel, because only administrators may list its subscribers. */}
      {failure && chat.type === 'group' && <Trouble text={failure} retry={() => void load(cursor)} />}
      {cursor && (
        <button type="button" className="button" onClick={() => void load(cursor)}>
          {t('more')}
        </button>
      )}
      {manages && <JoinRequests chat={chat.id} accepted={() => void load()} />}
      {manages && <AddMember chat={chat} added={() => void load()} />}
      {manages && <InviteLinks chat={chat.id} />}
      {own?.status !== 'creator' && <Leave chat={chat} left={close} />}
    </div>
  );
}

const statusWords: Partial<Record<ChatMember['status'], WordKey>> = {
  creator: 'creator',
  administrator: 'administrator',
  restricted: 'restricted',
};

/** How long a chat can be muted, in hours. 0 means forever. */
const mutes = [1, 8, 0] as const;

function Mute({ chat }: { chat: ChatSummary }) {
  useSignal(chats);
  const served = useCell(pushServed);
  const now = chats.byId.get(chat.id) ?? chat;
  const change = async (verb: 'PUT' | 'DELETE', hours = 0) => {
    const until = Math.floor(Date.now() / 1_000) + hours * 3_600;
    await attempt(async () => {
      await call(verb, `/api/chats/${chat.id}/mute`, hours === 0 ? undefined : { until });
      await chats.refresh(chat.id);
    });
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

/** Shows the buttons that pin, unpin, archive and unarchive the chat. */
function Place({ chat }: { chat: ChatSummary }) {
  useSignal(chats);
  const { list_pin, archived } = chats.byId.get(chat.id) ?? chat;
  return (
    <div className="row center-row places">
      {!archived && (
        <button
          type="button"
          className="button"
          onClick={() => void setPlace(chat.id, 'list_pin', !list_pin)}
        >
          <Icon name={list_pin ? 'unpin' : 'pin'} size={18} /> {t(list_pin ? 'unpin' : 'pin')}
        </button>
      )}
      <button type="button" className="button" onClick={() => void setPlace(chat.id, 'archive', !archived)}>
        <Icon name={archived ? 'unarchive' : 'archive'} size={18} />{' '}
        {t(archived ? 'from_archive' : 'to_archive')}
      </button>
    </div>
  );
}

export function ChatInfo({ chat, close }: { chat: ChatSummary; close: () => void }) {
  return (
    <Dialog title={t('about', { name: chatName(chat) })} close={close}>
      {chats.byId.has(chat.id) && <Mute chat={chat} />}
      {chats.byId.has(chat.id) && <Place chat={chat} />}
      {chat.type === 'private' && <BotInfo chat={chat} close={close} />}
      {chat.type === 'person' && <PersonInfo chat={chat} />}
      {chat.type !== 'private' && chat.type !== 'person' && <SharedInfo chat={chat} close={close} />}
    </Dialog>
  );
}
