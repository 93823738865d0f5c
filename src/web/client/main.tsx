/** Starts the application in its page. */
import { createRoot } from 'react-dom/client';
import { App } from './app.js';
// Of a part that is loaded later: styles come with the page.
import 'react-easy-crop/react-easy-crop.css';
import './style/base.css';
import './style/chat.css';
import './style/pages.css';
import './theme.js';
import { setLanguage, wantedLanguage } from './words.js';

const root = document.getElementById('root');
if (root) {
  // The first thing that is drawn is in the person's language already.
  await setLanguage(wantedLanguage(), false).catch(() => {});
  createRoot(root).render(<App />);
}
