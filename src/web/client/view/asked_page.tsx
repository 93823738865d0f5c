/**
 * Opens pages of bots that receive the person's signed identity. A Web App opens in a frame, any other page in a new
 * tab.
 */
import { lazy, type ReactNode, useState } from 'react';
import { reasonOf } from '../failures.js';
import { say } from '../notes.js';
import { t } from '../words.js';
import { Confirm, Part } from './ui.js';

const WebApp = lazy(() => import('./web_app.js'));

interface AskedPageProps {
  title: string;
  /** The URL of the page without the person's signed identity. */
  url: string;
  /** Whether the page is a Web App, which opens in a frame. */
  inFrame: boolean;
  /** Returns the URL of the page with the person's signed identity. */
  sign: () => Promise<{ url: string }>;
  children: (ask: () => void) => ReactNode;
}

/**
 * Calls `children` with a function that asks the person for a confirmation. After the confirmation, opens a page that
 * receives the person's identity.
 */
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
      {opened !== '' && (
        <Part>
          <WebApp title={title} url={opened} close={() => setOpened('')} />
        </Part>
      )}
    </>
  );
}
