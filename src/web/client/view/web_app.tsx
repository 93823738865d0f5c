/**
 * Shows pages of bots that learn who opened them. A Web App is in a frame. It may close itself and ask to open links.
 */
import { type ReactNode, useEffect, useRef, useState } from 'react';
import { reasonOf } from '../failures.js';
import { say } from '../notes.js';
import { t } from '../words.js';
import { Confirm, Dialog } from './ui.js';

/** The events of the page that have an effect. All others are ignored. */
interface PageEvent {
  eventType?: string;
  eventData?: { url?: unknown };
}

function eventOf(data: unknown): PageEvent {
  try {
    return typeof data === 'string' ? (JSON.parse(data) ?? {}) : {};
  } catch {
    return {};
  }
}

/** Returns the colours of this application, in the format of the Bot API. */
function themeOf(): Readonly<Record<string, string>> {
  const style = getComputedStyle(document.documentElement);
  const names = {
    bg_color: '--panel',
    secondary_bg_color: '--bg',
    text_color: '--text',
    hint_color: '--muted',
    link_color: '--accent',
    button_color: '--accent',
    button_text_color: '--accent-text',
  };
  return Object.fromEntries(
    Object.entries(names).map(([name, property]) => [name, style.getPropertyValue(property).trim()]),
  );
}

function WebApp({ title, url, close }: { title: string; url: string; close: () => void }) {
  const frame = useRef<HTMLIFrameElement>(null);
  useEffect(() => {
    const listen = ({ source, data }: MessageEvent) => {
      if (source !== frame.current?.contentWindow) return;
      const { eventType, eventData } = eventOf(data);
      const link = eventData?.url;
      if (eventType === 'web_app_close') close();
      if (eventType === 'web_app_open_link' && typeof link === 'string' && /^https?:\/\//i.test(link))
        say(t('bot_opens', { host: new URL(link).host }), 'alert', link);
    };
    addEventListener('message', listen);
    return () => removeEventListener('message', listen);
  }, [close]);
  const address = `${url}&tgWebAppThemeParams=${encodeURIComponent(JSON.stringify(themeOf()))}`;
  return (
    <Dialog title={title} close={close} wide>
      {/* Leaves out allow-same-origin, so that not even a page from this server can read the person's token. */}
      <iframe
        ref={frame}
        className="web-app"
        title={title}
        src={address}
        sandbox="allow-scripts allow-forms allow-popups"
        referrerPolicy="no-referrer"
      />
    </Dialog>
  );
}

interface AskedPageProps {
  title: string;
  /** The address before it is signed. */
  url: string;
  /** Whether the page is a Web App. Otherwise it opens in a new tab. */
  inFrame: boolean;
  /** Returns the address with the signed identity of the person. */
  sign: () => Promise<{ url: string }>;
  children: (ask: () => void) => ReactNode;
}

/** Shows a button that asks for confirmation before it opens a page that will receive the person's identity. */
export function AskedPage({ title, url, inFrame, sign, children }: AskedPageProps) {
  const [asking, setAsking] = useState(false);
  const [opened, setOpened] = useState('');
  const { host } = new URL(url);
  const open = async () => {
    try {
      const link = await sign();
      if (inFrame) setOpened(link.url);
      else say(t('bot_opens', { host }), 'alert', link.url);
    } catch (error) {
      say(reasonOf(error));
    }
  };
  return (
    <>
      {children(() => setAsking(true))}
      {asking && (
        <Confirm
          title={t('bot_opens', { host })}
          text={t('page_learns', { host })}
          action={t('open')}
          act={() => void open()}
          close={() => setAsking(false)}
        />
      )}
      {opened !== '' && <WebApp title={title} url={opened} close={() => setOpened('')} />}
    </>
  );
}
