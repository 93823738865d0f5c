/** Starts the scripts of the guides: the colour scheme and the search. */
import './docs.css';
import { startSearch } from './search.js';
import { startTheme } from './theme.js';

// Closes the menu of the guides on a phone, because an open menu would fill the screen.
if (matchMedia('(max-width: 800px)').matches)
  document.querySelector('.side details')?.removeAttribute('open');
startTheme(document.querySelector('.theme'));
startSearch(document.querySelector('form') as HTMLFormElement);
