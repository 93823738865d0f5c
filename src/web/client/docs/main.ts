/** Starts the scripts of the guides: the colour scheme and the search. */
import './docs.css';
import { startSearch } from './search.js';
import { startTheme } from './theme.js';

// Closes the menu on a phone, because it would fill the screen.
if (matchMedia('(max-width: 800px)').matches)
  document.querySelector('.side details')?.removeAttribute('open');
startTheme(document.querySelector('.theme'));
startSearch(document.querySelector('form') as HTMLFormElement);
