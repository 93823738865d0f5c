/** Starts the application in its page. */
import { createRoot } from 'react-dom/client';
import { App } from './app.js';
// Imports the styles of the picture cropper here, because styles are loaded with the page. The code of the cropper is
// loaded later.
import 'react-easy-crop/react-easy-crop.css';
import './style/base.css';
import './style/chat.css';
import './style/pages.css';
import { joinSession } from './session.js';
import './theme.js';
import { setLanguage, wantedLanguage } from './words.js';

const root = document.getElementById('root');
if (root) {
  // Before the page is first drawn, loads the language and takes over the session of another tab.
  await Promise.all([setLanguage(wantedLanguage(), false).catch(() => {}), joinSession()]);
  createRoot(root).render(<App />);
}
