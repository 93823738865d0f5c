/** Runs in the page before everything else. Must be small, because the page waits until this script has run. */
import { startEarlyCalls } from './early_calls.js';
import { storedToken } from './stored_token.js';

const token = storedToken();
if (token !== '') startEarlyCalls(token);
