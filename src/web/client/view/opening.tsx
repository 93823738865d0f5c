/** Opens the bot, person or chat that has a username. */
import { useEffect, useState } from 'react';
import { go } from '../route.js';
import { t } from '../words.js';
import { openUsername } from './chat_list.js';
import { Spinner } from './ui.js';

export function Opening({ username }: { username: string }) {
  const [missing, setMissing] = useState(false);
  useEffect(() => {
    setMissing(false);
    void openUsername(username).then((found) => setMissing(found === 'nobody'));
  }, [username]);
  return (
    <main className="main center">
      {missing ? (
        <div className="card stack center-text">
          <p>{t('nobody_has', { name: username })}</p>
          <button type="button" className="button" onClick={() => go('')}>
            {t('back')}
          </button>
        </div>
      ) : (
        <Spinner />
      )}
    </main>
  );
}
