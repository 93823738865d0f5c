/** Starts the application in its page. */
import { createRoot } from 'react-dom/client';
import { App } from './app.js';
// Imports the styles of the picture cropper here, because styles are loaded with the page. Its code is loaded later.
import 'react-easy-crop/react-easy-crop.css';
import './style/base.css';
import './style/chat.css';
import './style/pages.css';
import './theme.js';
import { setLanguage, wantedLanguage } from './words.js';

const root = document.getElementById('root');
if (root) {
  // Loads the person's language before the page is drawn for the first time.
  await setLanguage(wantedLanguage(), false).catch(() => {});
  createRoot(root).render(<App />);
}
