/** Shows a bot's Web App in a frame. The Web App may close itself, and may ask to open links. */
import { useEffect, useRef } from 'react';
import { say } from '../notes.js';
import { t } from '../words.js';
import { Dialog } from './ui.js';

/** A message from the Web App. Only the events that `listen` handles have an effect. */
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

/** Returns the colours of this application, in the form that the Bot API defines. */
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

export default function WebApp({ title, url, close }: { title: string; url: string; close: () => void }) {
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
      {/* Leaves out allow-same-origin, so that not even a Web App from this server can read the person's token. */}
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
