/** Shows the whole window: sign-in, the list of chats, and the open page next to the list. */
import { lazy, useEffect, useState } from 'react';
import { ApiFailure, get } from './api.js';
import { reasonOf } from './failures.js';
import { chats, startChats } from './model/chats.js';
import { drop, notes } from './notes.js';
import { route } from './route.js';
import { isLeaving, me, signOut, token } from './session.js';
import { useCell, useSignal } from './signal.js';
import type { Self } from './types.js';
import { ChatView } from './view/chat.js';
import { ChatList } from './view/chat_list.js';
import { Icon } from './view/icons.js';
import type { Opened } from './view/shortcuts.js';
import { Dialog, isCovered, Part, Spinner, Trouble } from './view/ui.js';
import { language, setLanguage, t, unreadText, wantedLanguage } from './words.js';

const Bots = lazy(() => import('./bots/bots.js'));
const JoinPage = lazy(async () => ({ default: (await import('./view/invite_links.js')).JoinPage }));
const OnePost = lazy(async () => ({ default: (await import('./view/one_post.js')).OnePost }));
const Opening = lazy(async () => ({ default: (await import('./view/opening.js')).Opening }));
const PersonPage = lazy(async () => ({ default: (await import('./view/person.js')).PersonPage }));
const Settings = lazy(async () => ({ default: (await import('./view/settings.js')).Settings }));
const Shortcuts = lazy(() => import('./view/shortcuts.js'));
const SignIn = lazy(async () => ({ default: (await import('./view/sign_in.js')).SignIn }));
const StartScreen = lazy(async () => ({ default: (await import('./view/start.js')).StartScreen }));

function Welcome() {
  return (
    <main className="main welcome">
      <div className="card center-text">
        <img src="/app/icon.svg" alt="" width="64" height="64" />
        <h2>{t('welcome')}</h2>
        <p className="muted">{t('welcome_hint')}</p>
        <div className="row center-row">
          <a className="button primary" href="#/bots/new">
            <Icon name="bot" size={18} /> {t('create_bot')}
          </a>
          <a className="button" href="#/bots">
            {t('my_bots')}
          </a>
        </div>
      </div>
    </main>
  );
}

/**
 * Moves the focus into a page when the person opens it, because the Tab key would otherwise first go through the whole
 * list of chats. The first page that a window shows does not get the focus.
 */
function useFocusInPage(page: string, id: string): void {
  const shown = `${page}/${id}`;
  useEffect(() => {
    const main = document.querySelector<HTMLElement>('.app.open > .main');
    const isFirst = lastShown === '';
    lastShown = shown;
    if (isFirst || !main || main.contains(document.activeElement) || isCovered()) return;
    main.tabIndex = -1;
    main.focus({ preventScroll: true });
  }, [shown]);
}

/** The page that was shown last, or '' if no page was shown before. */
let lastShown = '';

function Page() {
  const { page, id, tab } = useCell(route);
  useFocusInPage(page, id);
  switch (page) {
    case 'chat':
      return <ChatView key={id} id={Number(id)} tab={tab} />;
    case 'bot':
      return <StartScreen key={id} username={id} />;
    case 'person':
      return <PersonPage key={id} name={id} />;
    case 'to':
      return <Opening username={id} />;
    case 'join':
      return <JoinPage key={id} code={id} />;
    case 'post':
      return <OnePost key={id} id={id} />;
    case 'bots':
      return <Bots id={id} tab={tab} />;
    case 'settings':
      return <Settings />;
    default:
      return <Welcome />;
  }
}

function Notes() {
  const list = useCell(notes);
  const alert = list.find(({ kind }) => kind === 'alert');
  return (
    <>
      <div className="notes" role="status" aria-live="polite">
        {list
          .filter(({ kind }) => kind === 'note')
          .map(({ id, text }) => (
            <div className="note" key={id}>
              {text}
            </div>
          ))}
      </div>
      {alert && (
        <Dialog key={alert.id} title="" close={() => drop(alert.id)}>
          <p className="pre-line">{alert.text}</p>
          <div className="row end dialog-foot">
            {alert.url && (
              <a className="button" href={alert.url} target="_blank" rel="noopener noreferrer nofollow">
                {t('open')}
              </a>
            )}
            <button type="button" className="button primary" onClick={() => drop(alert.id)}>
              {t('ok')}
            </button>
          </div>
        </Dialog>
      )}
    </>
  );
}

/** Shows the number of unread messages in the window title. Archived chats do not count. */
function Title() {
  useSignal(chats);
  const unread = chats.list.reduce((sum, chat) => sum + (chat.unread_count ?? 0), 0);
  useEffect(() => {
    document.title = unread > 0 ? `(${unreadText(unread)}) Petrel` : 'Petrel';
  }, [unread]);
  return null;
}

const isTyping = (target: EventTarget | null): boolean =>
  target instanceof HTMLElement && target.matches('input, textarea, select');

/**
 * Returns what a pressed key opens. Recognises Ctrl+K by the position of the K key, because some keyboard layouts have
 * another letter there.
 */
function openedBy(event: KeyboardEvent): Opened | null {
  const { code, key, altKey, shiftKey, ctrlKey, metaKey, target } = event;
  if (code === 'KeyK' && (ctrlKey || metaKey) && !altKey && !shiftKey) return 'chats';
  return key === '?' && !ctrlKey && !metaKey && !isTyping(target) ? 'shortcuts' : null;
}

/** Handles keyboard shortcuts. While a dialog or a menu is open, the shortcuts do nothing. */
function KeyboardShortcuts() {
  const [opened, setOpened] = useState<Opened | null>(null);
  useEffect(() => {
    const onKey = (event: KeyboardEvent) => {
      const next = openedBy(event);
      if (!next || event.defaultPrevented || isCovered()) return;
      event.preventDefault();
      setOpened(next);
    };
    addEventListener('keydown', onKey);
    return () => removeEventListener('keydown', onKey);
  }, []);
  if (!opened) return null;
  return (
    <Part>
      <Shortcuts opened={opened} close={() => setOpened(null)} />
    </Part>
  );
}

/**
 * Loads and starts the code for notifications. This code is loaded separately, so that the page is drawn earlier.
 * Returns a cleanup function.
 */
function startPushLater(): () => void {
  let isHere = true;
  let end = () => {};
  import('./push.js').then(
    ({ startPush }) => {
      if (isHere) end = startPush();
    },
    // If the code for notifications cannot be loaded, this window has no notifications until it is reloaded.
    () => {},
  );
  return () => {
    isHere = false;
    end();
  };
}

function SignedIn() {
  const { page } = useCell(route);
  useEffect(() => startChats(), []);
  useEffect(() => startPushLater(), []);
  return (
    <div className={page === '' || page === 'archive' ? 'app' : 'app open'}>
      <Title />
      <header className="sr-only">
        <h1>Petrel</h1>
      </header>
      <ChatList />
      {/* The key makes React remove the former page at once, so that the former page marks no more messages as read. */}
      <Part
        key={page}
        waiting={
          <main className="main center">
            <Spinner />
          </main>
        }
      >
        <Page />
      </Part>
      <KeyboardShortcuts />
    </div>
  );
}

export function App() {
  const secret = useCell(token);
  const user = useCell(me);
  useCell(language);
  const [failure, setFailure] = useState('');
  // biome-ignore lint/correctness/useExhaustiveDependencies: the language depends on the signed-in person
  useEffect(() => void setLanguage(wantedLanguage(), false), [user]);
  const load = () => {
    setFailure('');
    get<Self>('/api/me').then(
      (found) => me.set(found),
      (error) => {
        if (error instanceof ApiFailure && error.status === 401) signOut(false);
        else setFailure(reasonOf(error));
      },
    );
  };
  // biome-ignore lint/correctness/useExhaustiveDependencies: runs once for each token
  useEffect(() => {
    if (secret !== '' && !me.value) load();
  }, [secret]);
  let shown = <SignedIn />;
  const waiting = (
    <main className="sign-in">
      <Spinner />
    </main>
  );
  if (secret === '')
    shown = isLeaving ? (
      waiting
    ) : (
      <Part waiting={waiting}>
        <SignIn />
      </Part>
    );
  else if (!user)
    shown = (
      <main className="sign-in">{failure ? <Trouble text={failure} retry={load} /> : <Spinner />}</main>
    );
  return (
    <>
      {shown}
      <Notes />
    </>
  );
}
